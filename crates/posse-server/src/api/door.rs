//! Access control over TCP. On the unix socket the kernel identifies the client; here a token does. Requests that a
//! browser was tricked into sending are rejected.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use posse_api::ProblemKind;

use super::ApiError;
use super::listen::Visitor;
use crate::disk::Disk;

/// The requirements for a TCP client.
#[derive(Clone)]
pub(crate) struct Door {
    /// `None`: everyone on this machine may come in.
    token: Option<Arc<str>>,
}

impl Door {
    pub(crate) fn new(token: Option<String>) -> Self {
        Self { token: token.map(Into::into) }
    }

    /// The order matters: a stranger learns nothing but that it is one.
    fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        // A name that leads here by DNS is how a web page reaches a local server.
        let host = uri.authority().map(Authority::as_str).or(text(HOST));
        if headers.get_all(HOST).iter().count() > 1 || !host.is_some_and(is_loopback) {
            let detail = "the Host header must name this machine, like 127.0.0.1 or localhost";
            return Err(ApiError::new(ProblemKind::ForeignHost, detail));
        }
        let foreign =
            || Err(ApiError::new(ProblemKind::ForeignOrigin, "requests from pages of other origins are refused"));
        // Browsers send this with every request of a page. No page is ours. No browser sends it twice.
        if headers.get_all(ORIGIN).iter().count() > 1 {
            return foreign();
        }
        if let Some(origin) = text(ORIGIN) {
            let same = origin.split_once("://").is_some_and(|(scheme, from)| scheme == "http" && Some(from) == host);
            if !same {
                return foreign();
            }
        }
        let Some(token) = &self.token else { return Ok(()) };
        let given = text(AUTHORIZATION).and_then(|value| value.split_once(' '));
        match given {
            Some((scheme, given)) if scheme.eq_ignore_ascii_case("bearer") && equal(given.trim(), token) => Ok(()),
            _ => Err(ApiError::new(ProblemKind::Unauthorized, "a token is needed")
                .with_hint("send `Authorization: Bearer TOKEN`; `posse serve` says where the token is")),
        }
    }
}

/// Takes as long for a wrong token as for a right one.
fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// Returns whether a host, with or without a port, is this machine by a name that cannot lead elsewhere.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Admits a request, or refuses it and closes its connection.
pub(crate) async fn check(
    State(door): State<Door>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let admitted = door.check(request.headers(), request.uri()).and_then(|()| visitor.admit());
    match admitted {
        Ok(()) => next.run(request).await,
        Err(error) => ([(CONNECTION, "close")], error).into_response(),
    }
}

/// The token of this home, made when it is first needed.
pub(crate) fn token(disk: &Disk, path: &Path) -> std::io::Result<String> {
    if let Ok(token) = disk.read_to_string(path)
        && token.trim().len() >= 32
    {
        return Ok(token.trim().to_owned());
    }
    let token: String = (0..4).map(|_| format!("{:016x}", crate::random())).collect();
    disk.write_private(path, format!("{token}\n").as_bytes())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(token: Option<&str>, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: axum::http::HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        match Door::new(token.map(Into::into)).check(&map, &Uri::from_static("/terminals")) {
            Ok(()) => 200,
            Err(error) => error.into_response().status().as_u16(),
        }
    }

    #[test]
    fn the_token_opens_and_nothing_else_does() {
        let host = ("host", "127.0.0.1:9889");
        let token = Some("secret");
        assert_eq!(check(token, &[host, ("authorization", "Bearer secret")]), 200);
        assert_eq!(check(token, &[host, ("authorization", "bearer secret")]), 200);
        for wrong in
            ["", "secret", "Bearer", "Bearer ", "Bearer Secret", "Bearer secret2", "Bearer secre", "Basic secret"]
        {
            assert_eq!(check(token, &[host, ("authorization", wrong)]), 401, "{wrong:?}");
        }
        assert_eq!(check(token, &[host]), 401);
        assert_eq!(check(None, &[host]), 200);
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["localhost", "localhost:9889", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:9889", "[::1]", "[::1]:9889"]
        {
            assert_eq!(check(None, &[("host", host)]), 200, "{host}");
        }
        for host in [
            "example.com",
            "example.com:9889",
            "127.0.0.1.example.com",
            "localhost.example.com",
            "0.0.0.0:9889",
            "10.0.0.1",
            "[fe80::1]:9889",
            "localhost@example.com",
            "127.0.0.1:9889@example.com",
            "",
            ":9889",
            "127.0.0.1:80:80",
        ] {
            assert_eq!(check(None, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(check(None, &[]), 403);
        assert_eq!(check(None, &[("host", "localhost"), ("host", "example.com")]), 403);
    }

    #[test]
    fn pages_of_others_are_turned_away() {
        let host = ("host", "localhost:9889");
        assert_eq!(check(None, &[host, ("origin", "http://localhost:9889")]), 200);
        for origin in
            ["http://example.com", "null", "http://localhost:1234", "https://localhost:9889", "", "localhost:9889"]
        {
            assert_eq!(check(None, &[host, ("origin", origin)]), 403, "{origin:?}");
        }
        let ours = ("origin", "http://localhost:9889");
        assert_eq!(check(None, &[host, ours, ("origin", "http://example.com")]), 403, "two origins");
        assert_eq!(check(None, &[host, ours, ours]), 403, "the same origin twice");
        let token = ("authorization", "Bearer secret");
        assert_eq!(
            check(Some("secret"), &[host, token, ("origin", "http://example.com")]),
            403,
            "a token does not help"
        );
    }
}

//! Parameters, in the query or in a JSON body. If a request has both, each name may appear in only one of them.
//! Parameters in the query are text.

use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::Uri;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use posse_api::ProblemKind;
use posse_core::ids::{Name, RunId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::ApiError;

pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let uri = request.uri().clone();
        // Check the length before the body is sent, so that the client does not wait for a refusal.
        let length =
            request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > super::MAX_BODY) {
            return Err(ApiError::too_large());
        }
        let body =
            Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status().as_u16() {
                413 => ApiError::too_large(),
                // The connection broke, or the next part did not come in time.
                _ => ApiError::new(ProblemKind::TooSlow, "the request took too long to arrive"),
            })?;
        let mut all = if body.iter().all(u8::is_ascii_whitespace) {
            Map::new()
        } else {
            match serde_json::from_slice(&body) {
                Ok(Value::Object(object)) => object,
                Ok(Value::Null) => Map::new(),
                Ok(_) => return Err(ApiError::malformed("the body must be a JSON object")),
                Err(error) => return Err(ApiError::malformed(format!("the body is not JSON: {error}"))),
            }
        };
        if all.is_empty() && uri.query().is_some() {
            return Ok(Params(in_query(&uri)?));
        }
        for (name, value) in in_query::<Vec<(String, String)>>(&uri)? {
            if all.insert(name.clone(), Value::String(value)).is_some() {
                return Err(ApiError::malformed(format!("{name} is given twice")));
            }
        }
        serde_json::from_value(Value::Object(all)).map(Params).map_err(|error| ApiError::malformed(error.to_string()))
    }
}

fn in_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ApiError> {
    let found = Query::try_from_uri(uri);
    found.map(|Query(found)| found).map_err(|rejection| ApiError::malformed(rejection.body_text()))
}

async fn path<T: DeserializeOwned + Send, S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<T, ApiError> {
    let found = Path::from_request_parts(parts, state).await;
    found.map(|Path(found)| found).map_err(|rejection| ApiError::malformed(rejection.body_text()))
}

/// The terminal or the run in the path.
pub(super) struct Id<T>(pub(super) T);

impl<T: FromStr<Err: Into<ApiError>>, S: Send + Sync> FromRequestParts<S> for Id<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text: String = path(parts, state).await?;
        text.parse().map(Id).map_err(Into::into)
    }
}

/// The run in the path, of a plan or of a backlog, and one of its sessions.
pub(super) struct RunSession(pub(super) RunId, pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for RunSession {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let (run, session): (String, String) = path(parts, state).await?;
        // A name and nothing else: it becomes part of a path.
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if session.starts_with(['.', '-']) || session.is_empty() || !session.chars().all(fits) {
            return Err(ApiError::malformed("that is no name of a session"));
        }
        Ok(RunSession(run.parse()?, session))
    }
}

/// The session in the path.
pub(super) struct SessionName(pub(super) Name);

impl<S: Send + Sync> FromRequestParts<S> for SessionName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text: String = path(parts, state).await?;
        // No session has a name that cannot be one.
        let shown = text.get(..text.floor_char_boundary(100)).unwrap_or_default();
        text.parse().map(Self).map_err(|_| ApiError::no_session(shown))
    }
}

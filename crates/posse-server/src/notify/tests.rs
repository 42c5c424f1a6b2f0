//! Against servers of our own on loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};

use super::*;

/// A server that answers every request with this, and hands over what it was sent.
fn server(answer: &'static str) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (requests, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            requests.send(read_request(&mut stream)).unwrap();
            write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    });
    (address, received)
}

fn read_request(stream: &mut TcpStream) -> String {
    let (mut request, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        let length = stream.read(&mut piece).unwrap();
        request.extend_from_slice(&piece[..length]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let expected = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if length == 0 || body.len() >= expected.unwrap_or(0) {
            return text;
        }
    }
}

fn has_header(request: &str, header: &str) -> bool {
    request.lines().any(|line| line.eq_ignore_ascii_case(header))
}

fn notice() -> Notice {
    Notice { event: "pass", priority: 3, title: "PASS".into(), text: "in round 2".into(), run: Some("r1".into()) }
}

/// Returns what was logged meanwhile.
async fn logged(channels: Notifications, notice: Notice) -> String {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    notify(&channels, notice).await;
    String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn ntfy_gets_a_title_a_priority_and_a_text() {
    let (url, requests) = server("200 OK");
    let channels =
        Notifications { ntfy_topic: "my-topic".into(), ntfy_url: format!("{url}/"), ..Notifications::default() };
    assert_eq!(logged(channels.clone(), notice()).await, "");
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /my-topic HTTP/1.1\r\n") && request.ends_with("\r\n\r\nin round 2"), "{request}");
    assert!(has_header(&request, "title: PASS") && has_header(&request, "priority: 3"), "{request}");

    let odd = Notice { title: "fertig ✓\r\nX-Evil: 1".into(), priority: 9, text: "x".repeat(9000), ..notice() };
    assert_eq!(logged(channels, odd).await, "");
    let request = requests.recv().unwrap();
    assert!(has_header(&request, "title: fertig ✓  X-Evil: 1"), "{request}");
    assert!(has_header(&request, "priority: 5"), "{request}");
    assert_eq!(request.split_once("\r\n\r\n").unwrap().1.len(), NTFY_TEXT);
}

#[tokio::test]
async fn a_webhook_gets_json() {
    let (url, requests) = server("204 No Content");
    let channels = Notifications { webhook: format!("{url}/hook?key=1"), ..Notifications::default() };
    assert_eq!(logged(channels, notice()).await, "");
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /hook?key=1 ") && has_header(&request, "content-type: application/json"));
    let body: serde_json::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let expected = r#"{"event":"pass","priority":3,"title":"PASS","text":"in round 2","run":"r1"}"#;
    assert_eq!(body, serde_json::from_str::<serde_json::Value>(expected).unwrap());
}

#[tokio::test]
async fn a_command_gets_variables_and_json() {
    let directory = tempfile::tempdir().unwrap();
    let (out, text) = (directory.path().join("out"), "a b\n$(touch evil)");
    let script = "cat > \"$1\"; printf '|%s|%s|%s|%s|%s' \
                  \"$POSSE_EVENT\" \"$POSSE_TITLE\" \"$POSSE_TEXT\" \"$POSSE_PRIORITY\" \"$POSSE_RUN\" >> \"$1\"";
    let command = ["sh", "-c", script, "sh", out.to_str().unwrap()].map(str::to_owned).to_vec();
    let channels = Notifications { command, ..Notifications::default() };
    let notice = Notice { text: format!("{text}\0"), ..notice() };
    assert_eq!(logged(channels.clone(), notice.clone()).await, "");
    let got = std::fs::read_to_string(&out).unwrap();
    let (json, variables) = got.split_once('|').unwrap();
    assert_eq!(variables, format!("pass|PASS|{text}|3|r1"));
    assert_eq!(serde_json::from_str::<serde_json::Value>(json).unwrap()["text"], format!("{text}\0"));

    let large = Notice { text: "x".repeat(300_000), ..notice };
    assert_eq!(logged(channels, large).await, "", "the kernel would refuse so large a variable");
    let got = std::fs::read_to_string(&out).unwrap();
    assert!(got.len() > 300_000);
}

#[tokio::test]
async fn what_is_not_configured_is_not_used() {
    let (url, requests) = server("200 OK");
    assert_eq!(logged(Notifications { ntfy_url: url, ..Notifications::default() }, notice()).await, "");
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn what_fails_is_logged_with_its_reason_and_without_secrets() {
    let (refusing, _requests) = server("403 Forbidden");
    let (moved, _requests) = server("302 Found\r\nlocation: http://127.0.0.1:1/");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ntfy = |topic: &str, url: &str| Notifications {
        ntfy_topic: topic.into(),
        ntfy_url: url.into(),
        ..Notifications::default()
    };
    let webhook = |url: String| Notifications { webhook: url, ..Notifications::default() };
    let command = |words: &[&str]| Notifications {
        command: words.iter().map(|&word| word.into()).collect(),
        ..Notifications::default()
    };
    for (channels, why) in [
        (ntfy("t", &refusing), "it answered with 403"),
        (ntfy("../t", &refusing), "a topic is made of"),
        (ntfy("t", "ntfy.sh"), "must begin with https://"),
        (webhook(format!("{moved}/secret")), "it answered with 302"),
        (webhook(format!("http://{closed}/secret")), "refused"),
        (webhook("ftp://host/secret".into()), "must begin with https://"),
        (webhook("secret".into()), "must begin with https://"),
        (command(&["posse-no-such-program"]), "there is no program"),
        (command(&["sh", "-c", "echo no bell >&2; exit 2"]), "exit status: 2: no bell"),
    ] {
        let log = logged(channels, notice()).await;
        assert!(log.contains(why) && log.contains("WARN") && log.lines().count() == 1, "{why}: {log}");
        assert!(!log.contains("secret"), "{log}");
    }
}

/// S-205: the server accepts the connection and never answers; and the command hangs. All channels are tried at once,
/// and the run continues after five seconds.
#[tokio::test]
async fn s_205_ntfy_unreachable_is_logged_within_5_s_and_the_run_goes_on() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let (answering, requests) = server("200 OK");
    let hanging = ["sh", "-c", "sleep 1000 & wait"].map(str::to_owned).to_vec();
    let channels = Notifications { ntfy_topic: "t".into(), ntfy_url: url, webhook: answering, command: hanging };
    let log = logged(channels, notice()).await;
    assert!(log.contains("ntfy: ") && log.contains("no answer within 5 s"), "{log}");
    assert!(log.contains("notification command: ") && log.contains("did not end within 5 s"), "{log}");
    assert!(requests.try_recv().is_ok() && !log.contains("webhook"), "{log}");
}

/// There is no server that speaks TLS here; but that we do, and that an unknown certificate is refused, can be seen.
#[tokio::test]
async fn https_is_spoken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let webhook = format!("https://{}", listener.local_addr().unwrap());
    let hello = std::thread::spawn(move || {
        let mut first = [0; 3];
        listener.accept().unwrap().0.read_exact(&mut first).unwrap();
        first
    });
    let log = logged(Notifications { webhook, ..Notifications::default() }, notice()).await;
    assert_eq!(hello.join().unwrap(), [0x16, 3, 1], "a handshake of TLS");
    assert!(log.contains("webhook: "), "{log}");
}

#[test]
fn the_same_words_are_told_once_a_minute() {
    let mut recent = Recent::default();
    let said = |text: &str| Notice { text: text.into(), ..notice() };
    let (here, there) =
        (Notifications::default(), Notifications { webhook: "https://there".into(), ..Default::default() });
    let other_run = Notice { run: Some("r2".into()), ..said("a") };
    for (seconds, channels, notice, is_new) in [
        (0, &here, said("a"), true),
        (1, &here, said("a"), false),
        (1, &here, said("b"), true),
        (1, &here, other_run, true),
        (1, &there, said("a"), true),
        (59, &here, said("a"), false),
        // A minute after it was sent, not after it was last suppressed.
        (60, &here, said("a"), true),
        (60, &here, said("b"), false),
    ] {
        let now = Mono(Duration::from_secs(seconds));
        assert_eq!(recent.is_new(channels, &notice, now), is_new, "{seconds} {notice:?}");
    }
}

#[test]
fn notice_that_was_not_sent_does_not_count_as_told() {
    let notifier = Notifier::default();
    let _all = notifier.free.clone().try_acquire_many_owned(MOST as u32).unwrap();
    notifier.tell(&Notifications { webhook: "https://there".into(), ..Default::default() }, notice());
    assert!(notifier.recent.lock().unwrap().0.is_empty());
}

//! The main job, end to end.

use std::sync::mpsc;
use std::time::Duration;

use trunkline::{Client, Server, Status};

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn pushes_calls_server_push_and_server_calls_work() {
    let (sender, received) = mpsc::channel();
    let server = Server::builder()
        .on_push(1, move |cx, body| {
            sender.send((cx.session().id(), body.to_vec())).unwrap();
        })
        .on_call(2, |_, body| {
            let number = u32::from_le_bytes(body.as_bytes().try_into().unwrap());
            (number + 1).to_le_bytes()
        })
        .on_call("/fail", |_, _| -> Result<(), Status> {
            Err(Status::new(1234, "no").with_cause("because"))
        })
        .bind("127.0.0.1:0")
        .unwrap();
    let (sender, news) = mpsc::channel();
    let client = Client::builder()
        .on_push(3, move |_, body| sender.send(body.to_vec()).unwrap())
        .on_call(4, |_, body| {
            let mut body = body.to_vec();
            body.reverse();
            body
        })
        .connect(server.local_address())
        .unwrap();
    client.push(1, b"hello").unwrap();
    let (id, body) = received.recv_timeout(LIMIT).unwrap();
    assert_eq!(body, b"hello");
    assert_eq!(id, client.id());
    let reply = client.call(2, 41u32.to_le_bytes()).unwrap();
    assert_eq!(reply.body(), 42u32.to_le_bytes());
    let error = client.call("/fail", b"").unwrap_err();
    assert_eq!(error.status().unwrap().code(), 1234);
    assert_eq!(error.status().unwrap().cause(), "because");
    let error = client.call("/none", b"").unwrap_err();
    assert_eq!(error.status().unwrap().code(), Status::NO_ROUTE);
    let session = server.hub().session(id).unwrap();
    session.push(3, b"news").unwrap();
    assert_eq!(news.recv_timeout(LIMIT).unwrap(), b"news");
    assert_eq!(session.call(4, b"abc").unwrap().body(), b"cba");
    let report = client.shutdown(LIMIT).unwrap();
    println!("{report}");
    assert_eq!(report.reason, trunkline::CloseReason::Clean);
    assert_eq!(report.unconfirmed.messages, 0);
    assert_eq!(report.confirmed.messages, 5);
    let report = server.shutdown(LIMIT).unwrap();
    println!("{report}");
}

//! What can be done with the handles themselves.

use trunkline::{
    Client, ClientBuilder, CloseReport, Error, Hub, Inbox, Pending, Received, Reply, Responder,
    Server, ServerBuilder, Session, SessionSnapshot, Status,
};

fn is_shared<T: Send + Sync + 'static>() {}
fn is_cloned_and_shared<T: Clone + Send + Sync + 'static>() {}

#[test]
fn all_that_is_kept_can_be_sent_to_other_threads_and_shared() {
    is_cloned_and_shared::<Client>();
    is_cloned_and_shared::<Session>();
    is_cloned_and_shared::<Hub>();
    is_cloned_and_shared::<Inbox>();
    is_cloned_and_shared::<Error>();
    is_cloned_and_shared::<Status>();
    is_cloned_and_shared::<Reply>();
    is_cloned_and_shared::<CloseReport>();
    is_cloned_and_shared::<SessionSnapshot>();
    is_shared::<Server>();
    is_shared::<Pending>();
    is_shared::<Received>();
    is_shared::<Responder>();
    is_shared::<ClientBuilder>();
    is_shared::<ServerBuilder>();
}

//! What a call handler may return.

use super::Context;
use crate::codec::IntoBody;
use crate::session::Deferred;
use crate::status::Status;

/// A handler's result, and how it becomes the answer: a body, nothing, a status, or later.
pub trait IntoReply {
    /// Answers the call.
    fn into_reply(self, to: ReplyTo<'_, '_>);
}

/// The call that a handler's result answers.
#[derive(Debug)]
pub struct ReplyTo<'a, 'c> {
    pub(super) context: &'a Context<'c>,
}

impl ReplyTo<'_, '_> {
    /// Answers with a body.
    pub fn body(self, body: impl IntoBody) {
        self.context.answer(body);
    }

    /// Answers with an error status.
    pub fn status(self, status: &Status) {
        self.context.answer_error(status);
    }
}

impl<T: IntoBody> IntoReply for T {
    fn into_reply(self, to: ReplyTo<'_, '_>) {
        to.body(self);
    }
}

impl<T: IntoReply> IntoReply for Result<T, Status> {
    fn into_reply(self, to: ReplyTo<'_, '_>) {
        match self {
            Ok(reply) => reply.into_reply(to),
            // A status that says "no error" is none to fail with.
            Err(status) if status.code() == Status::OK => to.status(&Status::new(
                Status::HANDLER_FAILED,
                "the handler failed with status 0",
            )),
            Err(status) => to.status(&status),
        }
    }
}

/// The responder answers. If the handler never took one from this call, nobody would: then it
/// is answered here.
impl IntoReply for Deferred {
    fn into_reply(self, to: ReplyTo<'_, '_>) {
        to.context
            .answer_status(Status::NO_REPLY, "the handler gave no answer");
    }
}

/// What [`Context::reply`] returns: the answer is on its way.
#[derive(Debug)]
pub struct Replied(pub(super) ());

impl IntoReply for Replied {
    fn into_reply(self, to: ReplyTo<'_, '_>) {
        to.context
            .answer_status(Status::NO_REPLY, "the handler gave no answer");
    }
}

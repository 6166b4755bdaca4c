//! Answers to the peer's calls.

use super::Connection;
use super::sending::NotPut;
use super::writing::Company;
use crate::config::Limits;
use crate::error::{Error, ErrorKind};
use crate::message::{CodecId, Kind, MessageRef, MetadataRef, Route};
use crate::queue::Class;
use crate::status::{Status, StatusRef};

impl Connection {
    /// Answers a call of the peer. What does not fit is replaced by a status, for which there
    /// is always room. The answer is the status code that it came to.
    pub(crate) fn reply(
        &self,
        sequence: u32,
        status: Option<StatusRef<'_>>,
        metadata: MetadataRef<'_>,
        codec: CodecId,
        body: &[u8],
    ) -> i32 {
        let mut answered = status.map_or(Status::OK, |status| status.code);
        let mut reply = MessageRef::new(Kind::Reply, Route::Number(0), sequence, codec, body);
        reply.status = status;
        reply.metadata = metadata;
        match self.send_reply(&reply, Class::Reply) {
            Ok(()) => {}
            Err(error) if error.is_closed() => {}
            Err(error) => {
                let code = match error.kind() {
                    ErrorKind::QueueFull => {
                        self.counters.others.calls_overloaded.fetch_add(1);
                        Status::OVERLOADED
                    }
                    _ => Status::TOO_LARGE,
                };
                answered = code;
                let text = error.to_string();
                let mut short =
                    MessageRef::new(Kind::Reply, Route::Number(0), sequence, codec, &[]);
                short.status = Some(StatusRef {
                    code,
                    text: &text,
                    cause: "",
                });
                if let Err(error) = self.send_reply(&short, Class::Control) {
                    if error.kind() == ErrorKind::QueueFull {
                        self.fail(too_many_calls(&self.config.limits));
                    }
                }
            }
        }
        self.incoming_answered(sequence);
        answered
    }

    /// Answers a call of the peer with an error status.
    pub(crate) fn reply_status(
        &self,
        sequence: u32,
        status: StatusRef<'_>,
        metadata: MetadataRef<'_>,
    ) -> i32 {
        self.reply(sequence, Some(status), metadata, CodecId::BYTES, &[])
    }

    fn send_reply(&self, reply: &MessageRef<'_>, class: Class) -> Result<(), Error> {
        match self.put(reply, class) {
            Ok(waiting) => {
                self.appended(Kind::Reply, Company::Alone, waiting);
                Ok(())
            }
            Err(NotPut::Full(full)) => Err(self.full(full.shortage)),
            Err(NotPut::Refused(error)) => Err(error),
        }
    }
}

fn too_many_calls(limits: &Limits) -> Error {
    Error::new(
        ErrorKind::ProtocolAbuse,
        format!(
            "the peer calls without reading the replies: limits.incoming_calls is {}",
            limits.incoming_calls
        ),
    )
}

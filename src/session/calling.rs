//! The methods that send: whoever has a peer offers the same.

/// Pushing and calling, through `self.callee()`.
macro_rules! calling_methods {
    () => {
        /// Sends a one-way message; waits for room in the send queue up to `timeouts.push`.
        ///
        /// It returns when the message is queued; with
        /// [`SlowPeer::DropNewest`]($crate::SlowPeer::DropNewest) also when it was dropped. Messages
        /// of one thread arrive in their order.
        ///
        /// # Errors
        /// `Timeout` if there was no room in time, `QueueFull` where the limit is zero, `SlowPeer`
        /// where [that policy]($crate::SlowPeer) has ended the session for it, `Closed` or
        /// `Disconnected`, `TooLarge`, `Unsupported` by the protocol, `InvalidInput` for an empty or
        /// reserved route and for what the codec refuses; in a handler that would have to wait
        /// `WouldDeadlock`, or `Overloaded` if no thread can take over. Then nothing was sent.
        #[doc(alias = "AsyncSend")]
        #[doc(alias = "SendMessage")]
        #[doc(alias = "send")]
        pub fn push<'r>(
            &self,
            route: impl Into<$crate::Route<'r>>,
            body: impl $crate::IntoBody,
        ) -> Result<(), $crate::Error> {
            let limit = $crate::session::Callee::config(self.callee()).timeouts.push;
            self.push_message(route.into(), &body, $crate::connection::Wait::For(limit))
        }

        /// Sends a one-way message if there is room now, whatever the policy for slow peers.
        ///
        /// # Errors
        /// As [`push`]($crate::Session::push), but `QueueFull` at once if there is no room. The error gives
        /// the body back.
        #[doc(alias = "try_send")]
        pub fn try_push<'r, B: $crate::IntoBody>(
            &self,
            route: impl Into<$crate::Route<'r>>,
            body: B,
        ) -> Result<(), $crate::TryPushError<B>> {
            self.push_message(route.into(), &body, $crate::connection::Wait::No)
                .map_err(|error| $crate::TryPushError::new(error, body))
        }

        /// Sends a one-way message, waiting for room at most `limit`; zero does not wait. The
        /// policy for slow peers holds as for [`push`]($crate::Session::push).
        ///
        /// # Errors
        /// As [`push`]($crate::Session::push); the error gives the body back.
        #[doc(alias = "send_timeout")]
        pub fn push_timeout<'r, B: $crate::IntoBody>(
            &self,
            route: impl Into<$crate::Route<'r>>,
            body: B,
            limit: std::time::Duration,
        ) -> Result<(), $crate::TryPushError<B>> {
            self.push_message(route.into(), &body, $crate::connection::Wait::For(limit))
                .map_err(|error| $crate::TryPushError::new(error, body))
        }

        /// Calls the peer and waits for the reply, up to `timeouts.call`.
        ///
        /// # Errors
        /// `Status` if the peer answered an error status, `Timeout`, `Disconnected` (see
        /// [`Error::maybe_executed`]($crate::Error::maybe_executed)), `TooManyInFlight`, and those of [`push`]($crate::Session::push).
        #[doc(alias = "SyncSend")]
        #[doc(alias = "req")]
        #[doc(alias = "request")]
        pub fn call<'r>(
            &self,
            route: impl Into<$crate::Route<'r>>,
            body: impl $crate::IntoBody,
        ) -> Result<$crate::Reply, $crate::Error> {
            self.request(route).call(body)
        }

        /// Calls the peer and lends the reply's body to `read`: without an allocation.
        ///
        /// # Errors
        /// As [`call`]($crate::Session::call).
        pub fn call_with<'r, R>(
            &self,
            route: impl Into<$crate::Route<'r>>,
            body: impl $crate::IntoBody,
            read: impl FnOnce($crate::Body<'_>) -> R,
        ) -> Result<R, $crate::Error> {
            self.request(route).call_with(body, read)
        }

        /// Calls the peer and decodes the reply's body.
        ///
        /// # Errors
        /// As [`call`]($crate::Session::call), and `BadBody` or `Unsupported` if the reply does not decode.
        pub fn call_as<'r, T: for<'b> $crate::FromBody<'b>>(
            &self,
            route: impl Into<$crate::Route<'r>>,
            body: impl $crate::IntoBody,
        ) -> Result<T, $crate::Error> {
            self.request(route).call_with(body, |body| body.decode())?
        }

        /// Begins a push or call with metadata or a time limit of its own.
        #[doc(alias = "ctx")]
        pub fn request<'r>(&self, route: impl Into<$crate::Route<'r>>) -> $crate::Request<'_, 'r> {
            $crate::Request::new(self.callee(), route.into())
        }

        /// Waits until everything that was queued has been handed to the system.
        ///
        /// # Errors
        /// `Timeout`, or `Disconnected` if the connection ended before; `WouldDeadlock` or
        /// `Overloaded` in a handler that cannot hand the reading over.
        pub fn flush(&self, limit: std::time::Duration) -> Result<(), $crate::Error> {
            let deadline = $crate::config::deadline(std::time::Instant::now(), limit);
            let session = $crate::session::Callee::current(self.callee(), deadline)?;
            session.connection.flush(deadline)
        }

        #[inline]
        fn push_message(
            &self,
            route: $crate::Route<'_>,
            body: &impl $crate::IntoBody,
            wait: $crate::connection::Wait,
        ) -> Result<(), $crate::Error> {
            let metadata = $crate::MetadataRef::EMPTY;
            $crate::session::push(self.callee(), route, metadata, body, wait)
        }
    };
}
pub(crate) use calling_methods;

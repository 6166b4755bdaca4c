//! What a message is about: a number or a name.

/// What a message is about: an event number below `u32::MAX`, or a method name such as
/// `/math/add`.
///
/// Wherever a route is asked for, a `u32` or a `&str` will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route<'a> {
    /// An event number; `u32::MAX` is reserved.
    Number(u32),
    /// A method name, not empty.
    Name(&'a str),
}

impl Route<'_> {
    /// An owned copy.
    pub fn to_owned_route(self) -> OwnedRoute {
        match self {
            Route::Number(number) => OwnedRoute::Number(number),
            Route::Name(name) => OwnedRoute::Name(name.into()),
        }
    }
}

impl From<u32> for Route<'_> {
    fn from(number: u32) -> Self {
        Route::Number(number)
    }
}

impl<'a> From<&'a str> for Route<'a> {
    fn from(name: &'a str) -> Self {
        Route::Name(name)
    }
}

impl<'a> From<&'a String> for Route<'a> {
    fn from(name: &'a String) -> Self {
        Route::Name(name)
    }
}

impl<'a> From<&'a OwnedRoute> for Route<'a> {
    fn from(route: &'a OwnedRoute) -> Self {
        route.as_route()
    }
}

/// A route that owns its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OwnedRoute {
    /// An event number.
    Number(u32),
    /// A method name.
    Name(Box<str>),
}

impl OwnedRoute {
    /// A view of the route.
    pub fn as_route(&self) -> Route<'_> {
        match self {
            OwnedRoute::Number(number) => Route::Number(*number),
            OwnedRoute::Name(name) => Route::Name(name),
        }
    }
}

import FanfareCore

/// An OAuth 2 access token that a service has granted us.
struct AccessToken: Sendable {
  /// The token itself.
  let value: String
  /// From then on it is worthless.
  let expiresAt: UnixTime
  /// Counts the tokens of one sender, so that an answer can be laid at the door of the token that it was given to.
  let generation: Int
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
  /// Nothing of the token.
  var description: String { "access token \(generation)" }

  /// Keeps `dump` and interpolation of an enclosing value from printing the token.
  var customMirror: Mirror { Mirror(self, children: [:]) }
}

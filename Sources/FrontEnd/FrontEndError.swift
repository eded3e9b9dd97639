/// Why the front end cannot be made or run. For one request that fails there is `Refusal`.
package struct FrontEndError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of failure.
  package struct Code: Hashable, Sendable {
    private enum Wrapped { case configuration, insecureAuthentication, htpasswd, notListening }
    private let wrapped: Wrapped

    /// A setting is out of range or contradicts another one.
    package static let configuration = Self(wrapped: .configuration)
    /// The authenticator would let strangers in.
    package static let insecureAuthentication = Self(wrapped: .insecureAuthentication)
    /// The password file cannot be read, or has a line that is not accepted; the message has the line's number.
    package static let htpasswd = Self(wrapped: .htpasswd)
    /// The server ended before it listened.
    package static let notListening = Self(wrapped: .notListening)
  }

  package let code: Code
  /// For people; says which setting, file or line is meant, and nothing of a secret.
  package let message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { message }
}

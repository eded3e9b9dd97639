import FanfareCore
import JWTKit

/// The key of a Google service account, read from its JSON file.
package struct ServiceAccountKey: Sendable {
  /// `project_id`: the Firebase project.
  package let projectID: String
  /// `private_key_id`. Without it Google tries all keys of the account.
  let keyID: String?
  /// `client_email`: the issuer of assertions.
  let clientEmail: String
  /// `token_uri`: the URL for access tokens and the audience of assertions.
  let tokenURI: String
  /// `private_key`: PKCS #8 PEM, RSA.
  let privateKey: Insecure.RSA.PrivateKey
  private let pem: String

  /// Reads the content of a key file. Throws an error that names the member that is missing or invalid.
  package init(json: [UInt8]) throws(PushConfigurationError) {
    var members: [String: String] = [:]
    do {
      var reader = try JSONReader(json[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        if try reader.nextKind() == .string {
          members[key.text] = try reader.readString()
        } else {
          try reader.skipValue()
        }
      }
      try reader.finish()
    } catch {
      throw PushConfigurationError(field: "serviceAccount", problem: "must be the JSON key file of a service account")
    }
    func member(_ name: String) throws(PushConfigurationError) -> String {
      guard let value = members[name], !value.isEmpty else {
        throw PushConfigurationError(field: "serviceAccount.\(name)", problem: "is missing")
      }
      return value
    }
    if let type = members["type"], type != "service_account" {
      throw PushConfigurationError(field: "serviceAccount.type", problem: "must be service_account")
    }
    projectID = try member("project_id")
    let isPathSegment = projectID.utf8.allSatisfy { byte in
      byte.isLetterOrDigit || "-.:_".utf8.contains(byte)
    }
    guard isPathSegment else {
      throw PushConfigurationError(field: "serviceAccount.project_id", problem: "must be a project's id or number")
    }
    keyID = members["private_key_id"].flatMap { $0.isEmpty ? nil : $0 }
    clientEmail = try member("client_email")
    tokenURI = try member("token_uri")
    try ConfigurationCheck.httpsURL(tokenURI, field: "serviceAccount.token_uri")
    pem = try member("private_key")
    do {
      privateKey = try Insecure.RSA.PrivateKey(pem: pem)
    } catch {
      // The parser's own error may quote the key.
      throw PushConfigurationError(
        field: "serviceAccount.private_key", problem: "must be an RSA key of at least 2048 bits in PKCS #8 PEM")
    }
  }

  /// Whether tokens that were fetched with the other key are as good.
  func isSame(as other: Self) -> Bool { (pem, keyID, clientEmail) == (other.pem, other.keyID, other.clientEmail) }
}

extension ServiceAccountKey: Redacted {
  package var description: String { "service account of \(projectID)" }
}

/// The assertion with which a service account requests an access token (RFC 7523 in Google's profile).
struct ServiceAccountAssertion: JWTPayload {
  /// The longest lifetime that Google accepts, in seconds.
  static let lifetime: Int64 = 3600
  /// Allows sending through FCM only.
  static let messagingScope = "https://www.googleapis.com/auth/firebase.messaging"
  static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

  let iss: String
  let scope: String
  let aud: String
  let iat: Int64
  let exp: Int64

  init(account: ServiceAccountKey, now: UnixTime) {
    iss = account.clientEmail
    scope = Self.messagingScope
    aud = account.tokenURI
    iat = now.seconds
    exp = now.seconds + Self.lifetime
  }

  /// Required by the protocol. Assertions are only signed here, never verified.
  func verify(using algorithm: some JWTAlgorithm) async throws {}

  /// Signs with RS256.
  func signed(by account: ServiceAccountKey) async throws -> String {
    let keys = JWTKeyCollection()
    let keyID = account.keyID.map { JWKIdentifier(string: $0) }
    await keys.add(rsa: account.privateKey, digestAlgorithm: .sha256, kid: keyID)
    return try await keys.sign(self, kid: keyID)
  }
}

import FanfareCore
import JWTKit

/// A Google service account's key, as its JSON file holds it.
package struct ServiceAccountKey: Sendable {
  /// `project_id`: the Firebase project.
  package let projectID: String
  /// `private_key_id`.
  let keyID: String
  /// `client_email`: who signs.
  let clientEmail: String
  /// `token_uri`: where access tokens come from, and the audience of what is signed.
  let tokenURI: String
  /// `private_key`: PKCS #8 PEM, RSA.
  let privateKey: Insecure.RSA.PrivateKey

  /// Reads a key file's content. Throws an error that names the member which is missing or cannot be used.
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
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    guard isPathSegment else {
      throw PushConfigurationError(field: "serviceAccount.project_id", problem: "must be a project's id or number")
    }
    keyID = try member("private_key_id")
    clientEmail = try member("client_email")
    tokenURI = try member("token_uri")
    try ConfigurationCheck.httpsURL(tokenURI, field: "serviceAccount.token_uri")
    let pem = try member("private_key")
    do {
      privateKey = try Insecure.RSA.PrivateKey(pem: pem)
    } catch {
      // The parser's own error may quote what it read.
      throw PushConfigurationError(
        field: "serviceAccount.private_key", problem: "must be an RSA key of at least 2048 bits in PKCS #8 PEM")
    }
  }
}

extension ServiceAccountKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The project; no credential.
  package var description: String { "service account of \(projectID)" }

  package var debugDescription: String { description }

  /// Keeps `dump` and interpolation of an enclosing value from printing the key.
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}

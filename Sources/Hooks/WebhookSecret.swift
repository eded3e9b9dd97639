import Crypto
import FoundationEssentials

/// The secrets with which a hook's requests are signed: one, or two while a receiver changes from one to the other.
///
/// Signatures follow the Standard Webhooks specification: `v1,` and the base64 of the HMAC-SHA256 of the id, the
/// timestamp and the body, joined by dots.
package struct WebhookSecrets: Sendable, Equatable, CustomStringConvertible {
  package static let rule = """
    must name a file with one secret, or two on a line each: whsec_ and the base64 of 24 to 64 random bytes \
    (echo whsec_$(openssl rand -base64 32))
    """

  private let keys: [SymmetricKey]

  /// Reads the text of a file. Returns nil if it breaks `rule`.
  package init?(_ text: String) {
    let lines = text.split(whereSeparator: \.isNewline).map { $0.filter { !$0.isWhitespace } }.filter { !$0.isEmpty }
    guard (1...2).contains(lines.count) else { return nil }
    var keys: [SymmetricKey] = []
    for line in lines {
      guard line.hasPrefix("whsec_"), let key = Data(base64Encoded: String(line.dropFirst("whsec_".count))),
        (24...64).contains(key.count)
      else { return nil }
      keys.append(SymmetricKey(data: key))
    }
    self.keys = keys
  }

  /// The value of the header field `webhook-signature`: a signature with each secret.
  package func signature(id: String, timestamp: Int64, body: [UInt8]) -> String {
    let signed = Array("\(id).\(timestamp).".utf8) + body
    return keys.map { key in
      "v1," + Data(HMAC<SHA256>.authenticationCode(for: signed, using: key)).base64EncodedString()
    }.joined(separator: " ")
  }

  package var description: String { "\(keys.count) webhook secrets" }
}

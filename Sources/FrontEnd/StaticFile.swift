import Crypto
import FanfareCore
package import HTTPServer
package import HTTPTypes
import NIOCore

/// A file that is embedded in the program: part of a page, or a document.
///
/// It needs no credentials, so it contains nothing that depends on the deployment. Browsers load from this server alone
/// what a page refers to; inline scripts and styles do not work.
package struct StaticFile: Sendable {
  package let contentType: String
  private let content: ByteBuffer
  private let entityTag: String

  package init(contentType: String, bytes: [UInt8]) {
    self.contentType = contentType
    content = ByteBuffer(bytes: bytes)
    // A digest of the file: equal on front ends of one version, different for another file.
    entityTag = "\"\(Hexadecimal.text(SHA256.hash(data: bytes).prefix(8)))\""
  }

  /// Answers GET and HEAD: 200, or 304 for a file that the client has.
  package func answer(_ exchange: Exchange) -> Answer {
    // Caches must revalidate: the next version of the program may have another file.
    var headers: HTTPFields = [.eTag: entityTag, .cacheControl: "no-cache"]
    if let tags = exchange.headers[.ifNoneMatch], isAmong(tags) {
      return Answer(status: .notModified, headers: headers)
    }
    headers[.contentType] = contentType
    headers.append(contentsOf: Self.restrictions)
    return Answer(status: .ok, headers: headers, body: .bytes(content))
  }

  /// Whether the field contains the entity tag, weak or strong (RFC 9110 §13.1.2).
  private func isAmong(_ tags: String) -> Bool {
    tags.split(separator: ",").contains { given in
      let given = given.filter { $0 != " " && $0 != "\t" }
      return given == "*" || given == entityTag || given == "W/" + entityTag
    }
  }

  /// The header fields that tell a browser to do no more with a file than the page needs.
  package static let restrictions: HTTPFields = {
    var fields: HTTPFields = [.xContentTypeOptions: "nosniff"]
    fields[.contentSecurityPolicy] = """
      default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
      base-uri 'none'; form-action 'self'; frame-ancestors 'none'
      """
    if let referrerPolicy = HTTPField.Name("Referrer-Policy") { fields[referrerPolicy] = "no-referrer" }
    return fields
  }()
}

import FanfareCore
import HTTPTypes
import Hummingbird

/// Serves `GET /openapi.json`: an OpenAPI description of all routes. It needs no credentials.
///
/// The document is `openapi.json` in this folder. It is written by hand and embedded in the program; tests compare it
/// with the routes.
struct DescriptionRoute: Sendable {
  private let document = ByteBuffer(bytes: PackageResources.openapi_json)
  private let entityTag: String

  init() {
    // A digest of the document: equal on front ends of one version, different for another document.
    let digest = Fingerprint("openapi", body: PackageResources.openapi_json[...]).digest
    entityTag = "\"\(Hexadecimal.text(digest.prefix(8)))\""
  }

  /// Adds the route, which belongs to the process, not to a hub.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.get("openapi.json") { request, _ in answer(request) }
  }

  private func answer(_ request: Request) -> Response {
    // Caches must revalidate: the next version of the program may have another document.
    var headers: HTTPFields = [.eTag: entityTag, .cacheControl: "no-cache"]
    if let tags = request.headers[.ifNoneMatch], isAmong(tags) {
      return Response(status: .notModified, headers: headers)
    }
    headers[.contentType] = "application/json"
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: document))
  }

  /// Whether the field contains the entity tag, weak or strong (RFC 9110 §13.1.2).
  private func isAmong(_ tags: String) -> Bool {
    tags.split(separator: ",").contains { given in
      let given = given.filter { $0 != " " && $0 != "\t" }
      return given == "*" || given == entityTag || given == "W/" + entityTag
    }
  }
}

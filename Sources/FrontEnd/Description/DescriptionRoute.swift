import FanfareCore
import HTTPTypes
import Hummingbird

/// `GET /openapi.json`: every route of the front end, as an OpenAPI document. Open to everybody: nothing in it is
/// secret.
///
/// The document is `openapi.json` beside this file, written by hand and built into the program. A test compares it with
/// the routes.
struct DescriptionRoute: Sendable {
  private let document = ByteBuffer(bytes: PackageResources.openapi_json)
  private let mark: String

  init() {
    // Made of the document, so that front ends of one version agree on it and those of two do not.
    let digest = Fingerprint("openapi", body: PackageResources.openapi_json[...]).digest
    mark = "\"\(Hexadecimal.text(digest.prefix(8)))\""
  }

  /// Adds the route. It belongs to the process, not to a hub.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.get("openapi.json") { request, _ in answer(request) }
  }

  private func answer(_ request: Request) -> Response {
    // Whoever keeps a copy asks whether it is still good: the next version of the program may have another.
    var headers: HTTPFields = [.eTag: mark, .cacheControl: "no-cache"]
    if let marks = request.headers[.ifNoneMatch], isAmong(marks) {
      return Response(status: .notModified, headers: headers)
    }
    headers[.contentType] = "application/json"
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: document))
  }

  /// Whether the mark is one of those in the field, weak or strong (RFC 9110 §13.1.2).
  private func isAmong(_ marks: String) -> Bool {
    marks.split(separator: ",").contains { given in
      let given = given.filter { $0 != " " && $0 != "\t" }
      return given == "*" || given == mark || given == "W/" + mark
    }
  }
}

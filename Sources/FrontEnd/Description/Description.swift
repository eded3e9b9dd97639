/// The description of all routes: the OpenAPI document `GET /openapi.json`, and `GET /docs`, the page that shows it.
///
/// The document is written by hand; tests compare it with the routes. The page is made in the browser from the
/// document. All files are embedded in the program.
enum Description {
  /// The files by path.
  static let files = [
    "openapi.json": StaticFile(contentType: "application/json", bytes: PackageResources.openapi_json),
    "docs": StaticFile(contentType: "text/html; charset=utf-8", bytes: PackageResources.docs_html),
    "docs/page.css": StaticFile(contentType: "text/css; charset=utf-8", bytes: PackageResources.docs_css),
    "docs/page.js": StaticFile(contentType: "text/javascript; charset=utf-8", bytes: PackageResources.docs_js),
  ]
}

import FanfareCore
package import FrontEnd

/// The files of the operations page, embedded in the program: HTML, style, and modules without a framework or a build.
///
/// The page is a plain client of the HTTP API. It shows nothing before a log-in.
package enum ConsolePage {
  /// The style, and the module that makes elements: other pages of Fanfare look and work alike.
  package static var style: [UInt8] { PackageResources.style_css }
  package static var elements: [UInt8] { PackageResources.dom_js }

  /// The files by their paths.
  package static var files: [String: StaticFile] {
    let script = "text/javascript; charset=utf-8"
    let html = StaticFile(contentType: "text/html; charset=utf-8", bytes: PackageResources.index_html)
    return [
      "console": html,
      "console/style.css": StaticFile(contentType: "text/css; charset=utf-8", bytes: PackageResources.style_css),
      "console/app.js": StaticFile(contentType: script, bytes: PackageResources.app_js),
      "console/api.js": StaticFile(contentType: script, bytes: PackageResources.api_js),
      "console/dom.js": StaticFile(contentType: script, bytes: PackageResources.dom_js),
      "console/chart.js": StaticFile(contentType: script, bytes: PackageResources.chart_js),
      "console/overview.js": StaticFile(contentType: script, bytes: PackageResources.overview_js),
      "console/sends.js": StaticFile(contentType: script, bytes: PackageResources.sends_js),
      "console/broadcasts.js": StaticFile(contentType: script, bytes: PackageResources.broadcasts_js),
      "console/devices.js": StaticFile(contentType: script, bytes: PackageResources.devices_js),
      "console/letters.js": StaticFile(contentType: script, bytes: PackageResources.letters_js),
      "console/platforms.js": StaticFile(contentType: script, bytes: platforms),
    ]
  }

  /// The titles of the platforms by their names.
  private static var platforms: [UInt8] {
    let titles = JSONWriter.object { json in
      for platform in Platform.allCases { json.member(named: platform.name, platform.vocabulary.title) }
    }
    return Array("export const titles = ".utf8) + titles + Array(";\n".utf8)
  }
}

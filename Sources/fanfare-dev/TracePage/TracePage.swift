import Console
import FanfareCore
import Simulation

/// The page that replays one run of a simulation: one file with style, scripts and data, which loads nothing.
///
/// It has the look and the helpers of the operations page.
enum TracePage {
  /// The page of a run.
  static func html(of recording: Recording, _ report: Simulation.Report, _ profile: Profile, seed: UInt64) -> [UInt8] {
    let data = recording.json { json in
      json.member("profile", profile.name)
      json.member("seed", "\(seed)")
      json.member("digest", String(report.digest, radix: 16))
      json.member("faultsEnd", profile.duration.components.seconds * 1_000_000)
      json.object("counts") { json in
        json.member("sends", report.counts.accepted)
        json.member("pushes", report.counts.pushes)
        json.member("repeated", report.counts.repeated)
        json.member("deferred", report.counts.deferred)
        json.member("faults", report.faults.values.reduce(0, +))
        json.member("checks", report.counts.checks)
      }
    }
    let modules = [
      ConsolePage.elements, PackageResources.trace_js, PackageResources.lanes_js,
      PackageResources.waits_js, PackageResources.page_js,
    ]
    return fill(
      PackageResources.index_html,
      [
        "style": ConsolePage.style + PackageResources.trace_css, "script": Array(modules.map(joinable).joined()),
        // No element of a script ends within a string.
        "data": Array(data.map { $0 == UInt8(ascii: "<") ? Array("\\u003c".utf8) : [$0] }.joined()),
      ])
  }

  /// The module without its imports and exports: all modules become one script, because a page that is opened from a
  /// file may load none.
  private static func joinable(_ module: [UInt8]) -> [UInt8] {
    let lines = String(decoding: module, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    let kept = lines.filter { !$0.hasPrefix("import ") }.map { line in
      line.hasPrefix("export ") ? line.dropFirst("export ".count) : line
    }
    return Array((kept.joined(separator: "\n") + "\n").utf8)
  }

  /// The template with a part in the place of each comment `/*name*/`.
  private static func fill(_ template: [UInt8], _ parts: [String: [UInt8]]) -> [UInt8] {
    var page: [UInt8] = []
    for (index, piece) in String(decoding: template, as: UTF8.self).split(separator: "/*").enumerated() {
      guard index > 0, let end = piece.firstRange(of: "*/") else { page += piece.utf8; continue }
      page += parts[String(piece[..<end.lowerBound])] ?? []
      page += piece[end.upperBound...].utf8
    }
    return page
  }
}

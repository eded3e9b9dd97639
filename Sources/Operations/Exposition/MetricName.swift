/// How labels of swift-metrics become names that Prometheus accepts. Names that already follow its rules stay as they
/// are.
enum MetricName {
  /// The name of a metric of the given kind: other libraries use dots and leave out units.
  static func metric(_ label: String, kind: MetricKind, isTime: Bool) -> String {
    var name = sanitized(label, alsoAllowed: ":")
    if kind == .counter, !name.hasSuffix("_total") { name += "_total" }
    if isTime, !name.hasSuffix("_seconds") { name += "_seconds" }
    return name
  }

  /// The name of a label; names that Prometheus keeps for itself (two leading underscores, a histogram's `le`) get out
  /// of its way.
  static func label(_ name: String, reserved: String?) -> String {
    var name = sanitized(name, alsoAllowed: nil)
    while name.hasPrefix("__") { name.removeFirst() }
    return name == reserved ? name + "_" : name
  }

  private static func sanitized(_ name: String, alsoAllowed: Unicode.Scalar?) -> String {
    var result = ""
    for scalar in name.unicodeScalars.prefix(200) {
      switch scalar {
      case "a"..."z", "A"..."Z", "_": result.unicodeScalars.append(scalar)
      case "0"..."9":
        if result.isEmpty { result = "_" }
        result.unicodeScalars.append(scalar)
      case alsoAllowed: result.unicodeScalars.append(scalar)
      default: result += "_"
      }
    }
    return result.isEmpty ? "_" : result
  }
}

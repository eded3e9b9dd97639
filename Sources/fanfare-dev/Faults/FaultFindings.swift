/// What a scenario finds at the devices, beyond what every row is asked.
struct FaultFindings: Sendable {
  /// Pushes that have not come.
  var lost = 0
  /// Promises broken: come too late, or not come though there was time.
  var errors = 0
  /// Figures for the table; nil for none.
  var observed: String?
}

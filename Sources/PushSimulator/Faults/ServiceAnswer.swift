/// An HTTP answer of a service.
struct ServiceAnswer: Sendable {
  var status: Int
  var headers: [HeaderField] = []
  var body: [UInt8] = []
  /// What it is counted as: the status and the service's word.
  var label: String
  /// Whether it means that the push was taken.
  var isAccepted = false
}

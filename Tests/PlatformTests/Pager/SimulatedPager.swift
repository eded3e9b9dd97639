import FanfareCore
import PushSimulator

/// The invented service as the simulator plays it.
struct SimulatedPager: SimulatedPushService {
  static let platform = Pager.platform
  static let secret = "pager-secret"
  static let prefixes = [
    HandlePrefix(Pager.platform, "0410", .answer(status: 410, reason: "NoSuchNumber"), "410 NoSuchNumber")
  ]

  init(_ configuration: SimulatorConfiguration) {}

  func judge(_ request: SimulatedRequest) -> SimulatedVerdict? {
    let path = "/page/"
    guard request.target.hasPrefix(path) else { return nil }
    return SimulatedVerdict(
      handle: String(request.target.dropFirst(path.count)), pushID: request["pager-id"],
      refusal: request["authorization"] == Self.secret ? nil : (401, "BadSecret"))
  }

  func answer(status: Int, reason: String?) -> (headers: [HeaderField], body: [UInt8]) {
    ([HeaderField("content-type", "text/plain")], Array((reason ?? "paged").utf8))
  }
}

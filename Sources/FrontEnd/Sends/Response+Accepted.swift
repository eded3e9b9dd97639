import FanfareCore
import HTTPTypes
import Hummingbird

extension Response {
  /// The answer to a send that is durable: its id, and where it can be looked up. The app-compatible routes (200) do
  /// not tell the state.
  static func accepted(
    _ send: SendID, location: String, status: HTTPResponse.Status, isScheduled: Bool = false
  ) -> Response {
    var body: [UInt8] = []
    body.reserveCapacity(72)
    body.append(literal: #"{"id":"#)
    body.appendJSON(send)
    body.append(
      literal: status == .ok ? "}" : isScheduled ? #","state":"scheduled"}"# : #","state":"accepted"}"#)
    return .json(body, status: status, location: location)
  }
}

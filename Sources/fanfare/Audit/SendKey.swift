import FanfareCore

/// A send's id within its hub.
struct SendKey: Hashable {
  let hub: HubName
  let id: SendID
}

import FanfareCore

/// The outcomes that we come to without, or instead of, an answer of the service. Their reasons are words of our own.
extension PushOutcome {
  /// Nothing to show and nothing to carry.
  static let payloadEmpty = PushOutcome(.rejected, reason: "PayloadEmpty")
  /// More bytes than the service takes.
  static let payloadTooLarge = PushOutcome(.rejected, reason: "PayloadTooLarge")
  /// A native payload that is not what the service takes: no JSON object, or members of the wrong type.
  static let badPayload = PushOutcome(.rejected, reason: "BadPayload")
  /// A native payload that names a device, topic or condition of its own, although the send's audience decides that.
  static let targetInPayload = PushOutcome(.rejected, reason: "TargetInPayload")
  /// A data key that means something else to the service.
  static let reservedDataKey = PushOutcome(.rejected, reason: "ReservedDataKey")
  /// A collapse key that cannot travel in a header field of at most 64 bytes.
  static let badCollapseID = PushOutcome(.rejected, reason: "BadCollapseId")

  /// A handle that is no channel URI of WNS: nothing must ever be sent to it.
  static let badChannel = PushOutcome(.deviceGone, reason: "BadChannelURI")

  /// The push's time had passed before it could be handed over; the worker, whose clock says so too, settles it.
  static let expired = PushOutcome(.retryLater, reason: "Expired")
  /// As many pushes are waiting as may.
  static let queueFull = PushOutcome(.retryLater, reason: "QueueFull")
  /// The sender has been, or is being, shut down.
  static let closed = PushOutcome(.retryLater, reason: "Closed")
  /// No connection, or no free stream, was to be had within the request's time; the service has not seen it.
  static let notSent = PushOutcome(.retryLater, reason: "NotSent")
  /// No access token is to be had now. What the token endpoint has answered is not the push service's word on the push:
  /// it is as if there were no connection, whatever was answered and however soon the next fetch is.
  static let tokenUnavailable = PushOutcome(.retryLater, reason: "TokenUnavailable")
  /// The host of the device's channel was not reached, although the service was at other hosts.
  static let hostUnreachable = PushOutcome(.retryLater, reason: "HostUnreachable")
}

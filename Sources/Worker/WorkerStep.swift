package import FanfareCore

/// A step of an item or a device from one phase to another, or what followed from a push service's outcome.
///
/// `transitions` and `outcomes` list all steps that a worker takes, with the events that lead to them.
package enum WorkerStep: Hashable, Sendable {
  /// `record`: an item of the sends topic, whatever its kind.
  package enum Item: String, CaseIterable, Sendable { case record, segment, page }

  /// An item changes its phase; `to` is nil if it is given up, because its partition is lost or given back.
  case item(Item, from: ItemPhase, to: ItemPhase?)
  /// A device changes its phase; nil: it is not in memory, before its item knows it and after its item is done with it.
  case device(from: DevicePhase?, to: DevicePhase?)
  /// The retry policy's decision on an outcome.
  case outcome(PushOutcome.Verdict, RetryPolicy.Action)

  /// A step and the events that lead to it.
  package typealias Row = (step: WorkerStep, event: String)

  /// The phases of items and devices.
  package static let transitions: [Row] = [
    (.item(.record, from: .vacant, to: .resolving), "a record arrives"),
    (.item(.record, from: .resolving, to: .queued), "earlier sends of its key are in their first attempts"),
    (.item(.record, from: .queued, to: .resolving), "its lane's turn"),
    (.item(.record, from: .resolving, to: .dispatching), "devices found, or it came back with them"),
    (
      .item(.record, from: .resolving, to: .settling),
      "expired, no device, deferred again, divided into pages, or it cannot be used"
    ),
    (.item(.record, from: .resolving, to: .vacant), "its hub was not in the `SenderTable`; it begins again"),
    (.item(.record, from: .dispatching, to: .settling), "last device closed"),
    (.item(.record, from: .settling, to: .vacant), "acknowledged; a divided one is noted by the store"),
    (.item(.record, from: .queued, to: nil), "its partition is lost or given back"),
    (.item(.record, from: .resolving, to: nil), "its partition is lost or given back"),
    (.item(.record, from: .dispatching, to: nil), "its partition is lost or given back"),
    (.item(.record, from: .settling, to: nil), "its partition is lost"),

    (.item(.segment, from: .vacant, to: .resolving), "a record arrives"),
    (.item(.segment, from: .resolving, to: .walking), "its first pages are in hand"),
    (.item(.segment, from: .walking, to: .settling), "pages end without being pushed: expired, or cancelled"),
    (.item(.segment, from: .settling, to: .walking), "those are noted by the store, further pages are in hand"),
    (.item(.segment, from: .walking, to: .vacant), "its last page is finished"),
    (.item(.segment, from: .settling, to: .vacant), "its last pages, which ended without being pushed, are noted"),
    (.item(.segment, from: .walking, to: nil), "its partition is lost or given back"),
    (.item(.segment, from: .settling, to: nil), "its partition is lost"),

    (.item(.page, from: .vacant, to: .resolving), "its turn in its segment"),
    (.item(.page, from: .resolving, to: .dispatching), "at once: its devices follow"),
    (.item(.page, from: .dispatching, to: .settling), "exhausted, last device closed"),
    (.item(.page, from: .settling, to: .vacant), "noted by the store"),
    (.item(.page, from: .dispatching, to: nil), "its partition is lost or given back"),
    (.item(.page, from: .settling, to: nil), "its partition is lost"),

    (.device(from: nil, to: .queued), "found by a look-up, or back from a retry topic"),
    (.device(from: nil, to: .resting), "back from a retry topic shortly before its time"),
    (.device(from: nil, to: .deferred), "back from a retry topic long before its time"),
    (.device(from: nil, to: .done), "its result came back with others of its record"),
    (.device(from: .queued, to: .inFlight), "its place, its look-up is fresh"),
    (.device(from: .queued, to: .checking), "its place, its owner must be looked up again"),
    (.device(from: .checking, to: .queued), "still its owner's; goes on at once unless its platform was stopped"),
    (.device(from: .checking, to: .done), "no longer registered, or its item is given up"),
    (.device(from: .inFlight, to: .done), "final outcome"),
    (.device(from: .inFlight, to: .queued), "repeat at once, or hold for a stopped platform"),
    (.device(from: .inFlight, to: .resting), "repeat soon"),
    (.device(from: .inFlight, to: .deferred), "repeat later, or after an outage"),
    (.device(from: .queued, to: .resting), "an older push to the device is delayed"),
    (.device(from: .queued, to: .deferred), "waits for too long, behind an older push, or room is short"),
    (.device(from: .resting, to: .queued), "time is up, or the older push has ended"),
    (.device(from: .resting, to: .deferred), "its page leaves, or its partition is given back"),
    (.device(from: .queued, to: .done), "expired, its payload cannot be rendered, or its broadcast is cancelled"),
    (.device(from: .queued, to: .withdrawn), "broadcast cancelled before its first attempt"),
    (.device(from: .checking, to: .withdrawn), "broadcast cancelled before its first attempt"),
    (.device(from: .done, to: nil), "its item settles"),
    (.device(from: .deferred, to: nil), "its item settles"),
    (.device(from: .withdrawn, to: nil), "its page settles"),
    (.device(from: .queued, to: nil), "its item is given up"),
    (.device(from: .inFlight, to: nil), "its item is given up"),
    (.device(from: .resting, to: nil), "its item is given up"),
  ]

  /// The decisions on outcomes. During an outage a push that is to be repeated is deferred instead.
  package static let outcomes: [Row] = [
    (.outcome(.accepted, .finish(.delivered)), "always"),
    (.outcome(.rejected, .finish(.rejected)), "always"),
    (.outcome(.malformed, .finish(.rejected)), "always, with an alarm"),
    (.outcome(.deviceGone, .finish(.deviceGone)), "always"),
    (.outcome(.reauthenticate, .again), "the first time"),
    (.outcome(.reauthenticate, .wait), "the device alone is refused"),
    (.outcome(.reauthenticate, .finish(.expired)), "the same, and the wait would outlast the send"),
    (.outcome(.reauthenticate, .hold), "all are refused: the sender is stopped"),
    (.outcome(.reauthenticate, .finish(.failed)), "refused too often although the sender works for others"),
    (.outcome(.reauthenticate, .finish(.unconfirmed)), "the same, after an attempt without an answer"),
    (.outcome(.configurationError, .wait), "the device alone is refused"),
    (.outcome(.configurationError, .finish(.expired)), "the same, and the wait would outlast the send"),
    (.outcome(.configurationError, .hold), "all are refused: the sender is stopped"),
    (.outcome(.configurationError, .finish(.failed)), "refused too often although the sender works for others"),
    (.outcome(.configurationError, .finish(.unconfirmed)), "the same, after an attempt without an answer"),
    (.outcome(.retryHere, .again), "the first times"),
    (.outcome(.retryHere, .wait), "the service's delay, or the worker's own"),
    (.outcome(.retryHere, .finish(.expired)), "the wait would outlast the send"),
    (.outcome(.retryHere, .finish(.failed)), "too many attempts, or too old"),
    (.outcome(.retryHere, .finish(.unconfirmed)), "the same, after an attempt without an answer"),
    (.outcome(.retryLater, .wait), "the service's delay, or the worker's own"),
    (.outcome(.retryLater, .finish(.expired)), "the wait would outlast the send"),
    (.outcome(.retryLater, .finish(.failed)), "too many attempts, or too old"),
    (.outcome(.retryLater, .finish(.unconfirmed)), "the same, after an attempt without an answer"),
    (.outcome(.unknown, .wait), "the first times"),
    (.outcome(.unknown, .finish(.expired)), "the wait would outlast the send"),
    (.outcome(.unknown, .finish(.unconfirmed)), "too many attempts"),
  ]
}

/// The phases of an item.
package enum ItemPhase: String, CaseIterable, Sendable {
  /// The slot holds no item.
  case vacant
  /// Waits until an earlier send of the same key is through its first attempts.
  case queued
  /// Its devices are to be looked up, or are being looked up.
  case resolving
  /// A segment whose pages are pushed one after another, each as an item of its own.
  case walking
  /// Its devices are known and are being pushed to.
  case dispatching
  /// Its records are on their way to Kafka.
  case settling
}

/// The phases of a device, all while its item is dispatching.
package enum DevicePhase: String, CaseIterable, Sendable {
  /// In the queue of its platform lane, or, while its page is paused, in none.
  case queued
  /// Its owner is being looked up again. A place among the pushes in flight is reserved for it.
  case checking
  /// Handed to the sender.
  case inFlight
  /// Waits in memory until its `due` time, or until an older push to the same device has ended.
  case resting
  /// Has its result.
  case done
  /// To be written to a retry topic, with `due` as its time.
  case deferred
  /// Its broadcast was cancelled before any push to it: it counts as if it had not been found.
  case withdrawn
}

extension WorkerStep: CustomStringConvertible {
  package var description: String {
    switch self {
    case .item(let item, let from, let to): "\(item) \(from) → \(to.map { "\($0)" } ?? "given up")"
    case .device(let from, let to): "device \(from.map { "\($0)" } ?? "new") → \(to.map { "\($0)" } ?? "gone")"
    case .outcome(let verdict, .finish(let outcome)): "\(verdict) → \(outcome)"
    case .outcome(let verdict, let action): "\(verdict) → \(action)"
    }
  }
}

/// Told every step of a worker, in its order.
package typealias StepObserver = @Sendable (WorkerStep) -> Void

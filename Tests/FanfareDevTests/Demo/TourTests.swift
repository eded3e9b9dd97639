import FanfareCore
import PushSimulator
import Synchronization
import Testing

@testable import fanfare_dev

/// When the demo continues from its first four sends to the stream.
@Suite(.timeLimit(.minutes(1))) struct TourTests {
  private let guests = DemoPopulation(users: 0).guests

  /// A stream with a notification on each of the devices; it stays open.
  private func arrivals(on devices: [DemoPopulation.Device]) -> (AsyncStream<ReceivedNotification>, Any) {
    let (stream, continuation) = AsyncStream.makeStream(of: ReceivedNotification.self)
    for device in devices {
      // The simulator names a WNS device by the token of its channel.
      let handle = device.handle.split(separator: "=").last.map(String.init) ?? ""
      continuation.yield(
        ReceivedNotification(
          platform: device.platform, handle: handle, time: UnixTime(milliseconds: 0), pushID: nil, headers: [],
          payload: []))
    }
    return (stream, continuation)
  }

  @Test func tourContinuesWhenEveryGuestHasANotification() async throws {
    let (stream, more) = arrivals(on: [guests[0]] + guests)
    try await Tour.show(stream, untilAllHaveOne: guests)
    withExtendedLifetime(more) {}
  }

  /// Two pushes to one device do not count for two devices, and the wait has a time limit.
  @Test func timeoutNamesDevicesWithoutNotification() async throws {
    let (stream, more) = arrivals(on: [guests[0]] + guests.dropLast())
    let error = await #expect(throws: TimeLimitExceeded.self) {
      try await Tour.show(stream, untilAllHaveOne: guests, within: .milliseconds(50))
    }
    #expect(error?.description.contains("carol's PC") == true)
    withExtendedLifetime(more) {}
  }

  /// Sends that settle after the stream has begun would count for the stream.
  @Test func tourWaitsForLedger() async throws {
    let settled = Mutex(0)
    try await Tour.wait(for: 4) {
      settled.withLock {
        $0 += 1; return $0
      }
    }
    #expect(settled.withLock { $0 } == 4)
  }
}

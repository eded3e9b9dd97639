package import FanfareCore
package import RDKafka

/// One hook: the receiver of the outcomes of some hubs.
package struct HookConfiguration: Sendable {
  /// The outcomes that a hook receives.
  package enum Events: String, CaseIterable, Sendable {
    /// Every status record.
    case all
    /// Those that did not reach every device: failed devices, dead letters, expired and cancelled sends.
    case failures
    /// Those with a result for every device.
    case settled
  }

  /// The name in the configuration, in the consumer group, in metrics and in logs.
  package let name: String
  package let url: HookURL
  package let hubs: Set<HubName>
  package var events = Events.all
  /// Whether the receiver may have a private address, for development and receivers in the same network.
  package var allowsPrivate = false
  /// Certificates (PEM) to trust instead of the system's.
  package var trustRoots: String?
  /// The time limit of one request, from the name's resolution to the end of the answer.
  package var timeout: Duration = .seconds(10)
  /// The age beyond which an event that cannot be delivered is skipped.
  package var maximumAge: Duration = .seconds(72 * 3600)
  /// The most events in one request.
  package var batchEvents = 100
  /// The approximate limit of the bytes of one request.
  package var batchBytes = 512 * 1024
  package var backoff = Backoff(first: .seconds(1), limit: .seconds(300))
  /// How often an event that comes alone is refused (400, 422) before it is given up.
  package var maximumRefusals = 10
  /// The most records of one partition that are consumed and not delivered.
  package var windowRecords = 200

  package init(name: String, url: HookURL, hubs: Set<HubName>) {
    (self.name, self.url, self.hubs) = (name, url, hubs)
  }

  /// The consumer of this hook's group: a hook that fails delays no other hook, and no worker.
  package func consumer(client: KafkaClientConfiguration, topics: Topics) -> ConsumerConfiguration {
    var consumer = ConsumerConfiguration(
      client: client, groupID: "\(topics.prefix).hooks.\(name)", topics: [topics.status])
    consumer.readsHeaders = false
    // One endpoint gets the events of all partitions, but not together: while one event fails, those of other
    // partitions arrive.
    consumer.partitionCredit = windowRecords
    // For each partition: a hook that fails must not fill the memory with those of 64.
    consumer.prefetchRecords = 500
    consumer.prefetchBytes = 128 * 1024
    consumer.fetchWait = .milliseconds(100)
    // A new hook reports what happens from now on.
    consumer.start = .latest
    // A revocation waits for the requests that have been sent.
    consumer.rebalanceDeadline = timeout + .seconds(5)
    consumer.closeTimeout = timeout + .seconds(10)
    return consumer
  }
}

extension HookConfiguration {
  /// `trustRoots` are not certificates in PEM.
  package struct UnusableTrustRoots: Error {}
}

/// The address of a receiver: an https URL without credentials.
package struct HookURL: Hashable, Sendable {
  package static let rule = "must be an https URL without user name and fragment, of at most 2048 characters"

  package let text: String
  /// A name or an address, without brackets.
  let host: String

  /// Returns nil for any other text; see `rule`.
  package init?(_ text: String) {
    guard text.utf8.count <= 2048, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !text.contains("#"),
      text.lowercased().hasPrefix("https://")
    else { return nil }
    let authority = text.dropFirst("https://".count).prefix { $0 != "/" && $0 != "?" }
    guard !authority.contains("@"), !authority.contains("\\"), !authority.contains("%") else { return nil }
    let (host, port): (Substring, Substring)
    if authority.first == "[" {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      (host, port) = (authority[..<end].dropFirst(), authority[authority.index(after: end)...])
    } else {
      host = authority.prefix { $0 != ":" }
      port = authority.dropFirst(host.count)
    }
    // Only characters about which all readers of URLs agree: the host that is checked is the one that is connected.
    let isHost = host.allSatisfy { $0.isLetter || $0.isNumber || "-.:_".contains($0) }
    guard !host.isEmpty, isHost, port.isEmpty || (port.first == ":" && (1...65535).contains(Int(port.dropFirst()) ?? 0))
    else { return nil }
    self.host = host.lowercased()
    self.text = "https://" + authority.lowercased() + text.dropFirst("https://".count + authority.count)
  }
}

package import Logging
import Synchronization

/// The requests of a member to its group about offsets; `Consumer` makes them.
package protocol GroupRequests: Sendable {
  /// Commits offsets with their metadata; returns when the coordinator has them.
  func commitToGroup(_ offsets: [PartitionOffset]) async throws(RDKafkaError)
  /// The group's committed offsets with metadata; partitions without one are omitted.
  func committedByGroup(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset]
}

/// The requests about the offsets of a group without members, which any client may make.
package protocol PositionStore: Sendable {
  /// Commits offsets with their metadata; returns when the coordinator has them, or throws after a timeout.
  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError)
  /// Begins a commit whose end is not reported. Does not block.
  func beginCommit(_ offsets: [PartitionOffset]) throws(RDKafkaError)
  /// The committed offsets with metadata; partitions without one are omitted.
  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset]
}

/// The offsets that were settled while the group took no commits, in a second group that never has members.
///
/// A real coordinator accepts commits of the old generation until all members have joined again, which takes as long as
/// the session of a dead member. But librdkafka has one connection to the coordinator. The request to join is answered
/// last on it, and a commit behind that request arrives in the wrong generation. librdkafka's mock cluster refuses
/// commits all that time. The second group takes them from any connection and at any time.
///
/// No broker checks who commits to it. So each entry names the position of the group that it continues, its *base*, and
/// counts only while the group has exactly that position: entries of an earlier owner, or from before the group was
/// reset or mirrored, are ignored. The next commit to the group clears the entry, which would count again when somebody
/// resets the group to its base. An entry says only that records are settled, so the loss of one repeats records and
/// skips none.
package final class InterimOffsets: Sendable {
  /// The base of a partition of which the group has no position.
  private static let nothing: Int64 = -1

  private struct State {
    /// The group's positions, as far as this member has read or committed them.
    var bases: [TopicPartition: Int64] = [:]
    /// The entries that this member has written or read last.
    var entries: [TopicPartition: PartitionOffset] = [:]
    /// Whether the client may not use the second group.
    var isForbidden = false
    /// Whether the last attempt to write has failed.
    var hasFailed = false
  }

  private let group: String
  private let store: any PositionStore
  private let logger: Logger
  private let state = Mutex(State())

  /// `group` is the name of the second group, and `store` asks it.
  package init(group: String, store: any PositionStore, logger: Logger) {
    self.group = group
    self.store = store
    self.logger = logger
  }

  // A member's requests.

  /// Commits to the group, or keeps the offsets if it takes none; see `Consumer.commit`.
  package func commit(_ offsets: [PartitionOffset], to group: some GroupRequests) async throws(RDKafkaError) {
    do {
      try await group.commitToGroup(offsets)
    } catch {
      switch error.code {
      // After an outage, which librdkafka waits for, the member's session may be over and the group refuse its commits.
      case .rebalancing, .timedOut, .unreachable:
        // Partitions of a former member may have another owner, whose entries must not be replaced.
        if !error.isOfFormerMember {
          let unknown = partitionsWithoutBase(among: offsets)
          // An answer may come now that did not when they were assigned. Without it their offsets are not kept.
          if !unknown.isEmpty { do { _ = try await committed(unknown, by: group) } catch {} }
          try await keep(offsets)
        }
      default: break
      }
      throw error
    }
    supersede(by: offsets)
  }

  /// The group's committed offsets, which later entries continue.
  package func committed(
    _ partitions: [TopicPartition], by group: some GroupRequests
  ) async throws(RDKafkaError) -> [PartitionOffset] {
    forget(partitions)
    let committed = try await group.committedByGroup(partitions)
    note(committed, of: partitions)
    return committed
  }

  // Entries.

  /// Forgets what an earlier assignment of the partitions has told: another member may have owned them since.
  private func forget(_ partitions: [TopicPartition]) {
    state.withLock { state in
      for partition in partitions { (state.bases[partition], state.entries[partition]) = (nil, nil) }
    }
  }

  /// Notes the group's positions of the partitions; partitions without one are missing in `positions`.
  private func note(_ positions: [PartitionOffset], of partitions: [TopicPartition]) {
    state.withLock { state in
      for partition in partitions { state.bases[partition] = Self.nothing }
      for position in positions { state.bases[position.partition] = position.offset }
    }
  }

  /// Notes that the group has these positions, and clears the entries that they supersede.
  private func supersede(by positions: [PartitionOffset]) {
    note(positions, of: [])
    let entries = state.withLock { state in positions.compactMap { state.entries.removeValue(forKey: $0.partition) } }
    guard !entries.isEmpty else { return }
    do {
      try store.beginCommit(entries.map { PartitionOffset(partition: $0.partition, offset: $0.offset) })
    } catch {
      logger.debug("Interim offsets were not cleared", metadata: [LogKeys.error: "\(error)"])
    }
  }

  /// The partitions of these offsets whose base is unknown: the question for it has failed.
  private func partitionsWithoutBase(among offsets: [PartitionOffset]) -> [TopicPartition] {
    state.withLock { state in state.isForbidden ? [] : offsets.map(\.partition).filter { state.bases[$0] == nil } }
  }

  /// Writes entries, and returns when the broker has them or after the timeout. Entries that are written already, and
  /// those of partitions whose base is unknown, are left out.
  ///
  /// - Throws: `messageTooLarge`: an entry's metadata is longer than the offset's by its base.
  private func keep(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    let entries = state.withLock { state in
      state.isForbidden
        ? []
        : offsets.compactMap { offset -> PartitionOffset? in
          guard let base = state.bases[offset.partition] else { return nil }
          let entry = PartitionOffset(
            partition: offset.partition, offset: offset.offset, metadata: "\(base):\(offset.metadata ?? "")")
          return state.entries[offset.partition] == entry ? nil : entry
        }
    }
    guard !entries.isEmpty else { return }
    do {
      try await store.commit(entries)
    } catch {
      guard error.code != .messageTooLarge else { throw error }
      let wasKnown = state.withLock { state in
        defer { state.hasFailed = true }
        return state.hasFailed
      }
      if !forbids(error), !wasKnown {
        logger.warning("Interim offsets were not written", metadata: [LogKeys.error: "\(error)"])
      }
      return
    }
    state.withLock { state in
      state.hasFailed = false
      for entry in entries { state.entries[entry.partition] = entry }
    }
  }

  /// The entries that continue the group's positions, as `committed` last read them, with the metadata they were kept
  /// with.
  ///
  /// - Throws: `timedOut`, `unreachable`.
  package func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    guard !state.withLock({ $0.isForbidden }) else { return [] }
    let entries: [PartitionOffset]
    do {
      entries = try await store.committed(partitions)
    } catch {
      guard forbids(error) else { throw error }
      return []
    }
    let bases = state.withLock { state in
      for partition in partitions { state.entries[partition] = nil }
      for entry in entries where entry.metadata?.isEmpty == false { state.entries[entry.partition] = entry }
      return state.bases
    }
    return entries.compactMap { entry in
      guard let text = entry.metadata, let colon = text.firstIndex(of: ":"), let base = Int64(text[..<colon]),
        base == bases[entry.partition]
      else { return nil }
      let metadata = text[text.index(after: colon)...]
      return PartitionOffset(
        partition: entry.partition, offset: entry.offset, metadata: metadata.isEmpty ? nil : String(metadata))
    }
  }

  /// Whether the cluster refuses this client the second group, which is reported once and then not tried again.
  private func forbids(_ error: RDKafkaError) -> Bool {
    guard error.code == .unauthorized else { return false }
    let isFirst = state.withLock { state in
      defer { state.isForbidden = true }
      return !state.isForbidden
    }
    if isFirst {
      logger.warning(
        "This client may not use the group of interim offsets: grant READ on it, or deaths of members repeat more",
        metadata: [LogKeys.group: "\(group)", LogKeys.error: "\(error)"])
    }
    return true
  }
}

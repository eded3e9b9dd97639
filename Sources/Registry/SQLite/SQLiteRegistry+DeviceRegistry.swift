package import FanfareCore
import GRDB

extension SQLiteRegistry: DeviceRegistry {
  /// Issues an id, or gives back the one that holds the handle; see `DeviceRegistry`.
  package func issue(hub: HubName, handle: String?, at now: UnixTime) async throws -> RegistrationID {
    let forms = handle.map(RegistrationRules.forms(ofHandle:)) ?? []
    return try await write(at: now) { db in
      let table = RegistrationTable(db, hub)
      let holders = try forms.compactMap { try table.find(handle: $0, at: now) }
      guard let newest = holders.max(by: { $0.registeredAt < $1.registeredAt }) else {
        let id = RegistrationID.random()
        try table.putPending(id, handle: forms.last, at: now)
        return id
      }
      for holder in holders where holder.id != newest.id {
        try table.remove(holder, leaving: Tombstone(cause: .merged, detail: newest.id.description, at: now))
      }
      if newest.registration == nil { try table.putPending(newest.id, handle: nil, at: now) }
      return newest.id
    }
  }

  /// Completes, replaces or takes over a registration; see `DeviceRegistry`.
  package func complete(_ application: RegistrationRequest, at now: UnixTime) async throws -> Registration {
    let tags = try RegistrationRules.tags(of: application.user, given: application.tags)
    return try await write(at: now) { db in
      let table = RegistrationTable(db, application.hub)
      guard let stored = try table.find(application.id, at: now) else { throw RegistrationRules.gone }
      let registration = Registration(
        id: application.id, hub: application.hub, user: application.user, platform: application.platform,
        handle: DeviceHandle.normalized(application.handle, platform: application.platform), tags: tags,
        installation: nil,
        registeredAt: now,
        createdAt: RegistrationRules.createdAt(by: application.user, replacing: stored.registration, at: now))
      guard stored.mayBeReplaced(by: registration) else { throw RegistrationRules.gone }
      try table.put(registration, replacing: stored)
      return registration
    }
  }

  /// Creates or replaces the registration of an installation; see `DeviceRegistry`.
  package func install(_ application: InstallationRequest, at now: UnixTime) async throws -> Registration {
    try await install([application], at: now)[0]
  }

  /// Creates or replaces the registrations of many installations in one transaction: all of them, or none when one is
  /// refused.
  package func install(_ applications: [InstallationRequest], at now: UnixTime) async throws -> [Registration] {
    let tags = try applications.map { application in
      try RegistrationRules.tags(of: application.user, given: application.tags, installation: application.installation)
    }
    return try await write(at: now) { db in
      try zip(applications, tags).map { application, tags in
        let table = RegistrationTable(db, application.hub)
        let stored = try table.find(installation: application.installation)
        let registration = Registration(
          id: stored?.id ?? .random(), hub: application.hub, user: application.user, platform: application.platform,
          handle: DeviceHandle.normalized(application.handle, platform: application.platform), tags: tags,
          installation: application.installation, registeredAt: now,
          createdAt: RegistrationRules.createdAt(by: application.user, replacing: stored?.registration, at: now))
        guard stored?.mayBeReplaced(by: registration) ?? true else {
          throw RegistryError(.gone, "the installation belongs to somebody else")
        }
        try table.put(registration, replacing: stored)
        return registration
      }
    }
  }

  /// Removes a registration of the user; see `DeviceRegistry`.
  package func remove(_ id: RegistrationID, hub: HubName, user: String, at now: UnixTime) async throws {
    try await write(at: now) { db in
      let table = RegistrationTable(db, hub)
      guard let stored = try table.find(id, at: now), let owner = stored.registration?.user,
        owner.hasSameBytes(as: user)
      else {
        throw RegistryError(.notFound, "there is no such registration")
      }
      try table.remove(stored, leaving: Tombstone(cause: .removed, detail: "", at: now))
    }
  }

  /// The live registration of that id; see `DeviceRegistry`.
  package func registration(_ id: RegistrationID, hub: HubName) async throws -> Registration? {
    try await read { db in try RegistrationTable(db, hub).find(id)?.registration }
  }

  /// The devices of each audience; see `DeviceRegistry`.
  package func resolve(_ queries: [AudienceQuery]) async throws -> [[Target]] {
    guard !queries.isEmpty else { return [] }
    return try await read { db in try AudienceLookup(queries, weights: tagWeights).run(db) }
  }

  /// The next devices of an audience in a slice of the ids; see `DeviceRegistry`.
  package func page(
    _ query: AudienceQuery, of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int
  ) async throws -> AudiencePage {
    try await read { db in
      try AudiencePager(db, query, weights: tagWeights).page(of: slice, createdBefore: createdBefore, limit: limit)
    }
  }

  /// Drops devices that a push service called dead; see `DeviceRegistry`.
  package func drop(_ verdicts: [DeadDevice], at now: UnixTime) async throws -> [RegistrationID] {
    guard !verdicts.isEmpty else { return [] }
    return try await write(at: now) { db in
      var dropped: [RegistrationID] = []
      for verdict in verdicts {
        let table = RegistrationTable(db, verdict.hub)
        guard let stored = try table.find(verdict.registration, at: now), let registration = stored.registration,
          registration.handle.hasSameBytes(as: verdict.handle),
          verdict.since.map({ registration.registeredAt < $0 }) ?? true
        else { continue }
        try table.remove(stored, leaving: Tombstone(cause: .dead, detail: verdict.reason, at: now))
        dropped.append(stored.id)
      }
      return dropped
    }
  }
}

extension StoredRegistration {
  /// Whether the rules of ownership let the registration take this one's place.
  fileprivate func mayBeReplaced(by new: Registration) -> Bool {
    guard let registration else { return true }
    return RegistrationRules.mayReplace(registration, user: new.user, platform: new.platform, handle: new.handle)
  }
}

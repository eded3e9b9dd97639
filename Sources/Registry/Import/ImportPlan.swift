import FanfareCore

/// The effect of a batch on the stored rows, computed in memory: a pure value.
///
/// It is made with all rows that the batch concerns, applies the lines one after the other, and then has the rows as
/// they are to be. So the database is not queried for each line.
struct ImportPlan {
  /// The row of an id before and after the batch.
  struct Place {
    /// The stored row; nil when there is none.
    let stored: StoredRegistration?
    /// The registration after the batch; nil when it is removed.
    var registration: Registration?
    /// The registration that replaced it.
    var successor: RegistrationID?
    /// Whether a line has written the registration.
    var isWritten = false
  }

  /// The owner of a handle or an installation before and after the batch.
  struct Owner {
    let stored: RegistrationID?
    var current: RegistrationID?
  }

  /// The rows that the batch concerns.
  private(set) var places: [RegistrationID: Place] = [:]
  /// The owners of the addresses and installations that the batch concerns.
  private(set) var handles: [String: Owner] = [:]
  private(set) var installations: [String: Owner] = [:]

  /// A plan from the stored owners of the batch's handles and installations, and the rows of these and the batch's ids.
  init(holders: [String: RegistrationID], installations: [String: RegistrationID], rows: [StoredRegistration]) {
    for (handle, id) in holders { handles[handle] = Owner(stored: id, current: id) }
    for (installation, id) in installations { self.installations[installation] = Owner(stored: id, current: id) }
    for row in rows {
      places[row.id] = Place(stored: row, registration: row.registration)
      if let handle = row.handle, handles[handle] == nil { handles[handle] = Owner(stored: row.id, current: row.id) }
      if let installation = row.registration?.heldInstallation, self.installations[installation] == nil {
        self.installations[installation] = Owner(stored: row.id, current: row.id)
      }
    }
  }

  /// Applies the next line and counts its result.
  mutating func take(_ line: RegistrationLine, outcome: inout ImportOutcome) {
    let new = line.registration
    let holder = handles[new.address]?.current
    let installed = new.heldInstallation.flatMap { installations[$0]?.current }
    let id = ImportJudgement.id(of: line, holder: holder, installed: installed)
    func registration(_ id: RegistrationID?) -> Registration? { id.flatMap { places[$0]?.registration } }
    let (stored, rivals) = (registration(id), (registration(holder), registration(installed)))
    let judgement = ImportJudgement(line, id: id, stored: stored, holder: rivals.0, installed: rivals.1)
    let isNew = stored == nil && rivals.0 == nil && rivals.1 == nil
    guard let registration = outcome.count(judgement, of: line, isNew: isNew) else { return }
    for other in [holder, installed] where other != id { if let other { bury(other, for: id) } }
    put(registration)
  }

  private mutating func put(_ registration: Registration) {
    let id = registration.id
    release(id)
    places[id] = Place(stored: places[id]?.stored, registration: registration, isWritten: true)
    handles[registration.address, default: Owner(stored: nil)].current = id
    if let installation = registration.heldInstallation {
      installations[installation, default: Owner(stored: nil)].current = id
    }
  }

  private mutating func bury(_ id: RegistrationID, for successor: RegistrationID) {
    release(id)
    places[id] = Place(stored: places[id]?.stored, registration: nil, successor: successor)
  }

  /// Releases the handle and the installation of an id.
  private mutating func release(_ id: RegistrationID) {
    guard let place = places[id] else { return }
    // An issued id may hold a handle, too.
    if let handle = place.registration?.address ?? place.stored?.handle, handles[handle]?.current == id {
      handles[handle]?.current = nil
    }
    if let installation = place.registration?.heldInstallation, installations[installation]?.current == id {
      installations[installation]?.current = nil
    }
  }
}

/// The decision about an imported line, by the rules of registering and the stored registrations that it concerns.
enum ImportJudgement {
  /// Store the registration, and remove the others that it concerns.
  case put(Registration)
  /// The same registration is already stored.
  case unchanged
  /// A registration that the line would replace was seen later than the line says.
  case outdated
  /// The rules forbid it, for this reason.
  case refused(String)

  /// The id of a line: its own, or else that of its installation's registration or of its handle's holder.
  static func id(of line: RegistrationLine, holder: RegistrationID?, installed: RegistrationID?) -> RegistrationID {
    line.isIDGiven ? line.registration.id : installed ?? holder ?? line.registration.id
  }

  /// Decides about a line by the registrations with the id, with the handle and of the installation. Issued ids do not
  /// count as registrations.
  init(
    _ line: RegistrationLine, id: RegistrationID, stored: Registration?, holder: Registration?, installed: Registration?
  ) {
    let new = line.registration
    func mayReplace(_ other: Registration?) -> Bool {
      other.map { RegistrationRules.mayReplace($0, user: new.user, platform: new.platform, handle: new.handle) } ?? true
    }
    let createdAt =
      line.isCreationGiven
      ? new.createdAt : RegistrationRules.createdAt(by: new.user, replacing: stored, at: new.registeredAt)
    var next = new
    (next.id, next.createdAt) = (id, createdAt)
    if let stored, stored == next, stored.user.hasSameBytes(as: next.user) {
      self = .unchanged
    } else if [stored, holder, installed].contains(where: { ($0?.seenAt ?? new.seenAt) > new.seenAt }) {
      self = .outdated
    } else if !mayReplace(stored) {
      self = .refused("id belongs to another user's registration with another handle")
    } else if !mayReplace(installed) {
      self = .refused("installation belongs to another user's registration with another handle")
    } else {
      self = .put(next)
    }
  }
}

extension ImportOutcome {
  /// Counts the decision about a line. Returns the registration to store; nil when nothing changes.
  mutating func count(_ judgement: ImportJudgement, of line: RegistrationLine, isNew: Bool) -> Registration? {
    switch judgement {
    case .unchanged: counts.unchanged += 1
    case .outdated: counts.outdated += 1
    case .refused(let reason):
      counts.skipped += 1
      refusals.append((line.number, reason))
    case .put(let registration):
      if isNew { counts.imported += 1 } else { counts.replaced += 1 }
      return registration
    }
    return nil
  }
}

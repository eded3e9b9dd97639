import FanfareCore

/// What a batch of lines makes of the rows that it concerns, found out without asking the database for each of them: it
/// is told what is stored, takes the lines one after the other, and says in the end what differs. A pure value.
struct ImportPlan {
  /// A registration, or an id that is only issued, before and after the batch.
  struct Place {
    /// The row; nil where there is none.
    let stored: RegistrationRow?
    /// The registration from now on; nil where there is none any more.
    var registration: Registration?
    /// Which registration has taken its place.
    var successor: RegistrationID?
    /// Whether a line has made it what it is now.
    var isTaken = false
  }

  /// Who has a handle or an installation, before and after the batch.
  struct Claim {
    let stored: RegistrationID?
    var owner: RegistrationID?
  }

  /// What the batch concerns, by its ids.
  private(set) var places: [RegistrationID: Place] = [:]
  /// The same of handles, and of installations.
  private(set) var handles: [String: Claim] = [:]
  private(set) var installations: [String: Claim] = [:]

  /// A plan on top of what is stored: who holds the batch's handles, who has its installations, and the rows of all
  /// these and of the batch's ids.
  init(holders: [String: RegistrationID], installations: [String: RegistrationID], rows: [RegistrationRow]) {
    for (handle, id) in holders { handles[handle] = Claim(stored: id, owner: id) }
    for (installation, id) in installations { self.installations[installation] = Claim(stored: id, owner: id) }
    for row in rows {
      places[row.id] = Place(stored: row, registration: row.registration)
      if let handle = row.handle, handles[handle] == nil { handles[handle] = Claim(stored: row.id, owner: row.id) }
      if let installation = row.registration?.installation, self.installations[installation] == nil {
        self.installations[installation] = Claim(stored: row.id, owner: row.id)
      }
    }
  }

  /// Takes the next line, and counts what becomes of it.
  mutating func take(_ line: RegistrationLine, outcome: inout ImportOutcome) {
    let new = line.registration
    let holder = handles[new.handle]?.owner
    let installed = new.installation.flatMap { installations[$0]?.owner }
    let id = ImportJudgement.id(of: line, holder: holder, installed: installed)
    func registration(_ id: RegistrationID?) -> Registration? { id.flatMap { places[$0]?.registration } }
    let (stored, rivals) = (registration(id), (registration(holder), registration(installed)))
    switch ImportJudgement(line, id: id, stored: stored, holder: rivals.0, installed: rivals.1) {
    case .unchanged: outcome.counts.unchanged += 1
    case .outdated: outcome.counts.outdated += 1
    case .refused(let reason):
      outcome.counts.skipped += 1
      outcome.refusals.append((line.number, reason))
    case .take(let registration):
      if stored == nil, rivals.0 == nil, rivals.1 == nil {
        outcome.counts.imported += 1
      } else {
        outcome.counts.replaced += 1
      }
      for other in [holder, installed] where other != id { if let other { bury(other, for: id) } }
      put(registration)
    }
  }

  private mutating func put(_ registration: Registration) {
    let id = registration.id
    release(id)
    places[id] = Place(stored: places[id]?.stored, registration: registration, isTaken: true)
    handles[registration.handle, default: Claim(stored: nil)].owner = id
    if let installation = registration.installation {
      installations[installation, default: Claim(stored: nil)].owner = id
    }
  }

  private mutating func bury(_ id: RegistrationID, for successor: RegistrationID) {
    release(id)
    places[id] = Place(stored: places[id]?.stored, registration: nil, successor: successor)
  }

  /// Takes from an id what it holds.
  private mutating func release(_ id: RegistrationID) {
    guard let place = places[id] else { return }
    // An id that is only issued may hold a handle, too.
    if let handle = place.registration?.handle ?? place.stored?.handle, handles[handle]?.owner == id {
      handles[handle]?.owner = nil
    }
    if let installation = place.registration?.installation, installations[installation]?.owner == id {
      installations[installation]?.owner = nil
    }
  }
}

package import FanfareCore

/// Registrations that Azure Notification Hubs wrote, as lines for an import.
///
/// A registration keeps its id, or gets the one that an id in Azure's form stands for; without a user's tag it gets a
/// user of its own.
package struct AzureRegistrations: Sendable {
  /// Tells that bytes are no list of registrations.
  package struct NoList: Error, CustomStringConvertible {
    package let description: String
  }

  /// The lines, each with a line feed.
  package private(set) var lines: [UInt8] = []
  /// The number of lines.
  package private(set) var count = 0
  /// The registrations that cannot be taken over, with the reasons; they name no handle.
  package private(set) var refusals: [(registration: String, reason: String)] = []

  /// The moment of the registrations: what a device reports here later is not overwritten.
  private let time: UnixTime

  package init(at time: UnixTime) { self.time = time }

  /// Reads a page of the list `/registrations`.
  package init(feed: ArraySlice<UInt8>, at time: UnixTime) throws(NoList) {
    self.time = time
    let document: XMLTree
    do throws(XMLError) { document = try XMLTree(feed, maximumCount: XMLTree.maximumCountOfPage) } catch {
      throw NoList(description: "the list of registrations cannot be read: \(error)")
    }
    guard document.name == "feed" else { throw NoList(description: "the answer is not a list of registrations") }
    for entry in document.children where entry.name == "entry" { add(entry, named: entry.value("title") ?? "?") }
  }

  /// Adds a registration of the file that an export job writes, which has one a line.
  package mutating func add(line: ArraySlice<UInt8>, number: Int) {
    do throws(XMLError) { add(try XMLTree(line), named: "line \(number)") } catch {
      refuse(line: number, error.description)
    }
  }

  /// Notes that a line of the file is no registration.
  package mutating func refuse(line number: Int, _ reason: String) { refusals.append(("line \(number)", reason)) }

  private mutating func add(_ document: XMLTree, named name: String) {
    do throws(InvalidDescription) {
      let description = try RegistrationDescription(document)
      guard let id = description.id ?? (document.name == "entry" ? name : nil) else {
        throw InvalidDescription("RegistrationId is missing")
      }
      let request = description.request(id: RegistrationID(azure: id), hub: .default)
      var json = JSONWriter(capacity: 512)
      json.object { json in
        json.member("id", request.id)
        json.member("user", request.user)
        json.member("platform", request.platform)
        json.member("handle", request.handle)
        json.member("installation", ifPresent: description.tags.installation)
        json.member("tags", description.tags.tags)
        request.profile?.writeMembers(to: &json)
        json.member("registeredAt", time)
      }
      lines += json.bytes
      lines.append(UInt8(ascii: "\n"))
      count += 1
    } catch {
      refusals.append((name, error.description))
    }
  }
}

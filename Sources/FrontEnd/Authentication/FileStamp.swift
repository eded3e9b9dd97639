import FoundationEssentials

/// What tells one version of a file from the next: its time of change, size and number on the disk. Of a symbolic link
/// those of what it leads to: the mounted secrets of Kubernetes are replaced that way.
struct FileStamp: Hashable {
  private let modified: Double?
  private let rest: [String]

  /// The stamp of the file at the path; a missing file has one as well, which differs from that of any file.
  init(path: String) {
    let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    // Why it cannot be looked at is said by whoever reads it next.
    let attributes = (try? FileManager.default.attributesOfItem(atPath: target)) ?? [:]
    modified = (attributes[.modificationDate] as? Date)?.timeIntervalSince1970
    rest = [.size, .systemFileNumber].map { (key: FileAttributeKey) in attributes[key].map { "\($0)" } ?? "" }
  }
}

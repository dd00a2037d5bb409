import Foundation
import WakeGateTestKit

/// What can befall one file of a journal. None of them is what a crash leaves.
enum FileDamage: CaseIterable {
    case flippedBit, flippedBits, zeroedSector, garbledSector, zeroedPage, zeroedBeginning, zeroedTail
    case cut, cutInHalf, cutByAPage, emptied, extended, deleted
    case swappedPages, copiedPage, changedPageHeader
    case cutCommits, zeroedCommits, zeroedFrameHeaders, changedSalt
    case older, foreign, linkedToNothing, folder

    private static let sectorBytes = 512
    private static let pageBytes = 16_384

    /// The file's content afterwards, where it still is a file with a content of its own; nil for the others.
    ///
    /// - Parameters:
    ///   - older: the file as it was a while before; nil when it was not there.
    ///   - foreign: the same file of another journal; nil when that has none.
    func applied(to content: Data, older: Data?, foreign: Data?, _ random: inout SeededGenerator) -> Data? {
        var bytes = [UInt8](content)
        switch self {
        case .flippedBit: Self.flip(&bytes, 1, &random)
        case .flippedBits: Self.flip(&bytes, 4, &random)
        case .zeroedSector: Self.fill(&bytes, Self.place(bytes, Self.sectorBytes, &random)) { 0 }
        case .garbledSector:
            Self.fill(&bytes, Self.place(bytes, Self.sectorBytes, &random)) { UInt8(random.number(below: 256)) }
        case .zeroedPage: Self.fill(&bytes, Self.place(bytes, Self.pageBytes, &random)) { 0 }
        case .zeroedBeginning: Self.fill(&bytes, 0..<min(Self.sectorBytes, bytes.count)) { 0 }
        case .zeroedTail: Self.fill(&bytes, random.number(below: bytes.count)..<bytes.count) { 0 }
        case .cut: bytes.removeLast(bytes.count - random.number(below: bytes.count))
        case .cutInHalf: bytes.removeLast(bytes.count / 2)
        case .cutByAPage: bytes.removeLast(min(Self.pageBytes, bytes.count))
        case .emptied: bytes = []
        case .extended: bytes += (0..<Self.pageBytes).map { _ in UInt8(random.number(below: 256)) }
        case .swappedPages: Self.movePage(&bytes, isSwap: true, &random)
        case .copiedPage: Self.movePage(&bytes, isSwap: false, &random)
        case .changedPageHeader: Self.changePageHeader(&bytes, &random)
        case .cutCommits, .zeroedCommits, .zeroedFrameHeaders, .changedSalt:
            self.changeLog(&bytes, &random)
        case .older: return older
        case .foreign: return foreign
        case .deleted, .linkedToNothing, .folder: return nil
        }
        return Data(bytes)
    }

    private static func flip(_ bytes: inout [UInt8], _ count: Int, _ random: inout SeededGenerator) {
        for _ in 0..<count { bytes[random.number(below: bytes.count)] ^= UInt8(1 << random.number(below: 8)) }
    }

    private static func place(_ bytes: [UInt8], _ size: Int, _ random: inout SeededGenerator) -> Range<Int> {
        let start = random.number(below: (bytes.count + size - 1) / size) * size
        return start..<min(bytes.count, start + size)
    }

    private static func fill(_ bytes: inout [UInt8], _ range: Range<Int>, _ byte: () -> UInt8) {
        for offset in range { bytes[offset] = byte() }
    }

    /// Of a journal's file; frames of a log are somewhat longer, and are cut where pages would begin.
    private static func movePage(_ bytes: inout [UInt8], isSwap: Bool, _ random: inout SeededGenerator) {
        let count = bytes.count / self.pageBytes
        guard count > 1 else { return self.flip(&bytes, 1, &random) }
        let one = random.number(below: count) * self.pageBytes
        let other = random.number(below: count) * self.pageBytes
        for offset in 0..<self.pageBytes {
            let mine = bytes[one + offset]
            if isSwap { bytes[one + offset] = bytes[other + offset] }
            bytes[other + offset] = mine
        }
    }

    /// A bit of a page's kind, its free space, or its count of cells.
    private static func changePageHeader(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        let page = random.number(below: max(1, bytes.count / self.pageBytes)) * self.pageBytes
        let offset = page + (page == 0 ? 100 : 0) + random.number(below: 8)
        bytes[min(offset, bytes.count - 1)] ^= UInt8(1 << random.number(below: 8))
    }

    // MARK: Logs

    private static let logHeaderBytes = 32
    private static let frameBytes = 24 + Self.pageBytes

    /// What befalls the newest commits of a log; another file has a bit flipped.
    private func changeLog(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        let commits = Self.commits(bytes)
        guard bytes.count > Self.logHeaderBytes, let last = commits.last else {
            return Self.flip(&bytes, 1, &random)
        }
        let count = random.number(in: 1...min(6, commits.count))
        let newest = commits.suffix(count)
        let start = newest.first?.first ?? last[0]
        switch self {
        case .cutCommits: bytes.removeLast(bytes.count - start)
        case .zeroedCommits: Self.fill(&bytes, start..<bytes.count) { 0 }
        case .zeroedFrameHeaders: for frame in newest.joined() { Self.fill(&bytes, frame..<frame + 24) { 0 } }
        default: bytes[start + 8 + random.number(below: 8)] ^= UInt8(random.number(in: 1...255))
        }
    }

    /// Where the frames of each commit begin: those with the header's salt, up to one that tells the file's size.
    private static func commits(_ bytes: [UInt8]) -> [[Int]] {
        var commits: [[Int]] = [[]]
        for start in stride(from: self.logHeaderBytes, through: bytes.count - self.frameBytes, by: self.frameBytes) {
            guard bytes[start + 8..<start + 16] == bytes[16..<24] else { break }
            commits[commits.count - 1].append(start)
            if bytes[start + 4..<start + 8].contains(where: { $0 != 0 }) { commits.append([]) }
        }
        return commits.filter { !$0.isEmpty }
    }
}

/// A promise of the rules that an outcome broke.
struct Violation: CustomStringConvertible {
    enum Promise: String, CaseIterable {
        case oneInFlight, spacing, budget, allowance, holds, attempts, joint, expiry, forceQuit, disposition
        case wakeEnd, retry, conservation, order, starvation
    }

    let promise: Promise
    let moment: Int64
    let device: String
    let what: String

    var description: String {
        "\(self.promise.rawValue): \(self.what) (device \(self.device) at \(self.moment) ms)"
    }
}

/// How often the corners were met, so that no promise is kept on nothing.
struct Sightings {
    private(set) var counts: [String: Int] = [:]

    mutating func saw(_ what: String) {
        self.counts[what, default: 0] += 1
    }

    mutating func add(_ other: Sightings) {
        self.counts.merge(other.counts, uniquingKeysWith: +)
    }
}

import FoundationEssentials
import Glibc

/// How much memory this process may have.
package enum MachineMemory {
    /// The bytes of the machine, or those of the control group (version 2) that holds the process, if they are fewer.
    ///
    /// - Parameter root: where the system's files lie.
    package static func bytes(root: String = "") -> Int {
        let machine = Int(sysconf(Int32(_SC_PHYS_PAGES))) * Int(sysconf(Int32(_SC_PAGESIZE)))
        return Self.groupLimits(root).reduce(machine, min)
    }

    /// The limits of the process's control group and of every group around it.
    private static func groupLimits(_ root: String) -> [Int] {
        let groups = (try? String(contentsOfFile: "\(root)/proc/self/cgroup", encoding: .utf8)) ?? ""
        guard let line = groups.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }) else { return [] }
        var parts = line.dropFirst("0::/".count).split(separator: "/")
        var limits: [Int] = []
        while true {
            let folder = ([root + "/sys/fs/cgroup"] + parts.map(String.init)).joined(separator: "/")
            // A group without a limit says "max", and the outermost has no file.
            let text = try? String(contentsOfFile: "\(folder)/memory.max", encoding: .utf8)
            if let limit = text.flatMap({ $0.split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) } }) {
                limits.append(limit)
            }
            guard parts.popLast() != nil else { return limits }
        }
    }
}

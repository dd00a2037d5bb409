import FoundationEssentials
import Glibc

/// The system's measurements of this process.
package struct ProcessFigures: Sendable {
    /// The resident memory in bytes.
    package let residentBytes: Int64
    package let openDescriptors: Int64
    /// The maximum number of open descriptors.
    package let descriptorsMax: Int64
    /// The processor time of this process in user and system mode, in seconds.
    package let processorSeconds: Double

    /// Reads all values.
    ///
    /// Before Linux 6.2, this function lists the open descriptors, which takes milliseconds for thousands. It must
    /// therefore not be called on the engine's thread or on a loop's thread.
    package static func read() -> ProcessFigures {
        ProcessFigures(
            residentBytes: self.residentBytes,
            openDescriptors: self.openDescriptors,
            descriptorsMax: self.descriptorsMax,
            processorSeconds: self.processorSeconds
        )
    }

    /// The current resident memory in bytes; 0 if the system does not report it.
    package static var residentBytes: Int64 {
        let pages = self.text("/proc/self/statm").split(separator: " ").dropFirst().first.flatMap { Int64($0) }
        return (pages ?? 0) * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static var openDescriptors: Int64 {
        // Since Linux 6.2, the size of the folder is the number of open descriptors.
        if let size = (try? FileSystem.status("/proc/self/fd"))?.size, size > 0 { return Int64(size) }
        // The list includes the descriptor with which the folder was read.
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return Int64(max(0, (names?.count ?? 0) - 1))
    }

    private static var descriptorsMax: Int64 {
        let line = self.text("/proc/self/limits").split(separator: "\n").first { $0.hasPrefix("Max open files") }
        return line?.split(separator: " ").dropFirst(3).first.flatMap { Int64($0) } ?? 0
    }

    /// The maximum size of a file in bytes; `UInt64.max` if it is unlimited.
    package static var fileBytesMax: UInt64 {
        var limit = rlimit()
        let isKnown = unsafe getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0
        return isKnown ? UInt64(limit.rlim_cur) : .max
    }

    /// The host name of the machine; nil if the system does not report it.
    package static var hostName: String? {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return nil }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The name of the user as whom this process runs; nil if the system does not know it.
    package static var userName: String? {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        let code = unsafe getpwuid_r(geteuid(), &entry, &buffer, buffer.count, &found)
        guard code == 0, unsafe found != nil, let name = unsafe entry.pw_name else { return nil }
        return unsafe String(cString: name)
    }

    /// Returns the value of an environment variable; nil if it is not set.
    package static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// The processor time of this process so far, in seconds.
    package static var processorSeconds: Double {
        Double(SystemClock.processorNanoseconds / 1_000_000) / 1000
    }

    private static func text(_ path: String) -> String {
        (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }
}

/// The amount of memory that this process may use.
package enum MachineMemory {
    /// Returns the memory of the machine in bytes, or the limit of a control group (version 2) of the process if it is
    /// lower.
    ///
    /// - Parameter root: the folder that contains `/proc` and `/sys`; empty for the system's root.
    package static func bytes(root: String = "") -> Int {
        let machine = Int(sysconf(Int32(_SC_PHYS_PAGES))) * Int(sysconf(Int32(_SC_PAGESIZE)))
        return Self.groupLimits(root).reduce(machine, min)
    }

    /// Returns the memory limits, in bytes, of the process's control group and all its parent groups.
    private static func groupLimits(_ root: String) -> [Int] {
        let groups = (try? String(contentsOfFile: "\(root)/proc/self/cgroup", encoding: .utf8)) ?? ""
        guard let line = groups.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }) else { return [] }
        var parts = line.dropFirst("0::/".count).split(separator: "/")
        var limits: [Int] = []
        while true {
            let folder = ([root + "/sys/fs/cgroup"] + parts.map(String.init)).joined(separator: "/")
            // The file of a group without a limit contains "max", and the root group has no file.
            let text = try? String(contentsOfFile: "\(folder)/memory.max", encoding: .utf8)
            if let limit = text.flatMap({ $0.split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) } }) {
                limits.append(limit)
            }
            guard parts.popLast() != nil else { return limits }
        }
    }
}

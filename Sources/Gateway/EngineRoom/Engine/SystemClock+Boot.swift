package import DeviceEngine
import Foundation
import Platform

extension SystemClock {
    /// What tells this boot from others; nil where the system does not say.
    package static let bootID: BootID? = {
        guard let file = FileHandle(forReadingAtPath: "/proc/sys/kernel/random/boot_id"),
            let data = try? file.read(upToCount: 64)
        else { return nil }
        return BootID(text: String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }()
}

import Policy
import Wire

extension Parameters {
    /// What tells these parameters from others in every process: 64 bits mixed from the names and values of those that
    /// are not the default, so that a parameter more changes nothing where nobody sets it.
    var digest: UInt64 {
        var hash: UInt64 = 0xE703_7ED1_A0B4_28DB
        func mix(_ word: UInt64) { hash = FoldedProduct.of(hash ^ word, 0xA076_1D64_78BD_642F) }
        let defaults = Parameters()
        for parameter in PolicyParameter.allCases {
            let value = parameter.value(in: self)
            guard value != parameter.value(in: defaults) else { continue }
            for byte in parameter.rawValue.utf8 { mix(UInt64(byte)) }
            mix(value.bitPattern)
        }
        return hash
    }
}

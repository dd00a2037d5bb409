import DeviceEngine
import SQLite

package host

import (
	"os"
	"strings"
)

// HasAppArmor reports whether the kernel of this machine confines programs by HasAppArmor.
func HasAppArmor() bool {
	text, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && strings.HasPrefix(string(text), "Y")
}

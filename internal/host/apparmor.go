package host

import (
	"os"
	"strings"
)

// AppArmor reports whether the kernel of this machine confines programs by AppArmor.
func AppArmor() bool {
	text, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && strings.HasPrefix(string(text), "Y")
}

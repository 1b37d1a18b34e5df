package backup

import (
	"os"
	"testing"

	test "orrery/test/need"
)

func TestMain(m *testing.M) { os.Exit(test.QuickInMemory(m)) }

package unattended

import (
	"os"
	"testing"

	"orrery/test/need"
)

func TestMain(m *testing.M) { os.Exit(need.InMemory(m)) }

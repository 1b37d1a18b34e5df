package experiment

import (
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/capture"
	"orrery/internal/lab/test/command"
	"orrery/internal/lab/test/cpu"
	"orrery/internal/lab/test/disk"
	"orrery/internal/lab/test/micro"
	"orrery/internal/lab/test/mpi"
	"orrery/internal/lab/test/net"
)

// A newTest function creates a test of one kind. It sets the defaults, calls decode to overwrite
// them with the options of an experiment's file, and checks the result. The message of an error
// begins with the option's key, or names the key with At.
type newTest = func(decode func(options any) error) (test.Test, error)

// allKinds returns the constructors of all kinds of test, keyed by the kind's name in experiments.
func allKinds() map[string]newTest {
	return map[string]newTest{
		"capture": capture.New,
		"command": command.New,
		"cpu":     cpu.New,
		"disk":    disk.New,
		"micro":   micro.New,
		"mpi":     mpi.New,
		"net":     net.New,
	}
}

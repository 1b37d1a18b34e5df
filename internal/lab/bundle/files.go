package bundle

import (
	"orrery/internal/host"
	"orrery/internal/tree"
)

// The files of a bundle, by their names in it.
const (
	HeadFile       = "bundle.json"
	ExperimentFile = "experiment.toml"
	SiteDir        = "site"
	FactsFile      = "facts.json"
	TrialsFile     = "trials.jsonl"
	SecondsFile    = "probes.jsonl"
	OutputDir      = "output"
	lockFile       = ".lock"
)

// Busy reports whether a run is writing the bundle. A head that says Running without one was left
// by a run that was killed.
func Busy(dir string) bool {
	root, err := enter(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	return busy(root)
}

func busy(root *tree.Root) bool {
	f, err := root.OpenFile(lockFile)
	if err != nil {
		return false
	}
	defer f.Close()
	return host.Flock(f, host.Shared) != nil
}

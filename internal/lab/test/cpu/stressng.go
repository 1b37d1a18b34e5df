package cpu

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"orrery/internal/problem"
)

// A loop is the result of one run of a method.
type loop struct {
	Version  string  `json:"version"`
	Ops      float64 `json:"ops"`
	RealRate float64 `json:"ops_per_second_real"`
	CPURate  float64 `json:"ops_per_second_cpu"` // per second of user and system time
	Wall     float64 `json:"wall"`               // s
	User     float64 `json:"user"`               // s
	System   float64 `json:"system"`             // s
}

// document is the output of stress-ng --metrics --yaml.
type document struct {
	System struct {
		Version string `yaml:"stress-ng-version"`
	} `yaml:"system-info"`
	Metrics []struct {
		Stressor string   `yaml:"stressor"`
		Ops      *float64 `yaml:"bogo-ops"`
		CPURate  *float64 `yaml:"bogo-ops-per-second-usr-sys-time"`
		RealRate *float64 `yaml:"bogo-ops-per-second-real-time"`
		Wall     *float64 `yaml:"wall-clock-time"`
		User     float64  `yaml:"user-time"`
		Kernel   float64  `yaml:"system-time"`
	} `yaml:"metrics"`
}

// parse reads the file that stress-ng --yaml wrote.
func parse(text []byte) (*loop, error) {
	var d document
	whole := strings.HasSuffix(strings.TrimSpace(string(text)), "\n...")
	if err := yaml.Unmarshal(text, &d); err != nil || !whole {
		p := problem.New(problem.Failed, "the output of stress-ng is not a complete YAML document (%d bytes)", len(text)).
			Try("check whether it was killed or the disk is full")
		if err != nil {
			p = p.Because(err)
		}
		return nil, p
	}
	for _, m := range d.Metrics {
		if m.Stressor != "cpu" {
			continue
		}
		if m.Ops == nil || m.CPURate == nil || m.RealRate == nil || m.Wall == nil {
			return nil, versionError(d.System.Version, "has no %s", "bogo-ops, their rates or wall-clock-time")
		}
		if *m.Ops <= 0 || *m.RealRate <= 0 || *m.CPURate <= 0 || *m.Wall <= 0 {
			return nil, versionError(d.System.Version, "tells of %s", "no operation: the time was too short for one")
		}
		return &loop{Version: d.System.Version, Ops: *m.Ops, RealRate: *m.RealRate, CPURate: *m.CPURate, Wall: *m.Wall,
			User: m.User, System: m.Kernel}, nil
	}
	return nil, versionError(d.System.Version, "has no %s", "metrics of the cpu stressor")
}

func versionError(version, format, what string) error {
	return problem.New(problem.Failed, "the output of stress-ng %s "+format, version, what).
		Try("the lab supports the output of version 0.15 with --metrics --yaml")
}

// methods reads the list that stress-ng prints when it does not know a method.
func methods(text string) []string {
	_, list, _ := strings.Cut(text, "cpu-method must be one of:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.Fields(list)
}

// geometricMean returns the geometric mean.
func geometricMean(rates []float64) float64 {
	logs := 0.0
	for _, r := range rates {
		logs += math.Log(r)
	}
	return math.Exp(logs / float64(len(rates)))
}

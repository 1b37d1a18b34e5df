package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smaller changes an example so that this machine can start it at once: no virtual machines, which
// labMachines tests, few copies, short trials, and no waiting for a quiet host. Settings and tests
// stay, so everything that they need is built, and every test is tried in every place.
func smaller(text string) string {
	for _, change := range [][2]string{
		{`(?m)^title .*$`, "$0\nquiet = \"none\"\ndisturbed = 1\nagain = \"none\""},
		{`(?m)^engine  *= "(kvm|xen)"$`, "$0\nmissing = \"this test makes no machines\""},
		{`(?m)^copies( *)= \[.*\]`, "copies$1= [1, 2]"},
		{`(?m)^kind *= "capture"$`, "$0\ntrial = \"50ms\"\ntrials = 3\nlossy = 1\nprecision = 0.2\nmost = \"1Gbit/s\"\npaper = false"},
		{`(?m)^seconds( *)= \d+`, "seconds$1= 1"},
		{`(?m)^time( *)= \d+`, "time$1= 1"},
		{`(?m)^size( *)= "1GiB"`, `size$1= "512MiB"`},
		{`(?m)^program( *)= "bonnie\+\+"\nsize( *)= .*$`, "program$1= \"bonnie++\"\nsize$2= \"64MiB\"\nmax_size = \"64MiB\""},
		{`(?m)^characters = true$`, "characters = false # of which there are as many in any file"},
	} {
		text = regexp.MustCompile(change[0]).ReplaceAllString(text, strings.ReplaceAll(change[1], "$0", "${0}"))
	}
	return text
}

// labExamples starts each experiment of examples/lab. Its nodes and layer are made, all of its
// tests are tried in all of its places, and the first trial gives figures. Then it is interrupted,
// and nothing is left behind.
func labExamples(t *testing.T) {
	s := newLab(t)
	paths, err := filepath.Glob("../examples/lab/*.toml")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d examples: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".toml"), func(t *testing.T) {
			began := time.Now()
			s.of(t).beginExample(path)
			t.Logf("it took %v", time.Since(began).Round(time.Second))
		})
	}
}

func (s *site) beginExample(path string) {
	s.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	name := filepath.Base(path)
	s.write("lab/"+name, smaller(string(text)))
	bundle := filepath.Join(s.dir, "of-"+name)
	cmd, _, errs := s.command("lab", "run", filepath.Join(s.dir, "lab", name), "--to", bundle)
	wait, err := begin(cmd)
	if err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- wait() }()
	over := false
	s.Cleanup(func() { // otherwise the next example would find it running
		if !over {
			_ = cmd.Process.Signal(syscall.SIGINT)
			<-ended
		}
	})
	s.eventually(func() error {
		select {
		case err := <-ended:
			over = true
			s.Fatalf("it ended by itself: %v\n%s", err, errs)
		default:
		}
		if s.trials(bundle) == 0 {
			return errors.New("no trial yet")
		}
		return nil
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.Fatal(err)
	}
	<-ended
	over = true
	if status := cmd.ProcessState.ExitCode(); status != 130 {
		s.Errorf("interrupted, it ends with %d\n%s", status, errs)
	}
	if err := firstTrial(bundle); err != nil {
		s.Errorf("%v\n%s", err, errs)
	}
	s.wantNoTrace()
}

// firstTrial checks that the first trial of a bundle gave figures.
func firstTrial(bundle string) error {
	text, err := os.ReadFile(filepath.Join(bundle, "trials.jsonl"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var trial struct {
		Test, Setting, Error string
		Samples              []struct{ Value float64 }
	}
	if err := json.Unmarshal([]byte(line), &trial); err != nil {
		return err
	}
	if trial.Error != "" || len(trial.Samples) == 0 {
		return fmt.Errorf("test %s in setting %s gave %d figures: %s", trial.Test, trial.Setting, len(trial.Samples),
			trial.Error)
	}
	return nil
}

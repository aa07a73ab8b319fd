// Package walk prints what a client found, step by step, as lines of JSON that tests/clients compares.
package walk

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Patience is how long a single step, and a wait for a condition, may take.
const Patience = 30 * time.Second

// Walk is one walk of one client over one cluster.
type Walk struct {
	Bootstrap []string
	Topic     string
	codeOf    func(error) (int, bool)
}

// Start reads the arguments of a program: bootstrap servers, and a topic that only this walk uses. codeOf finds Kafka's
// error code in an error of the client.
func Start(codeOf func(error) (int, bool)) *Walk {
	if len(os.Args) != 3 {
		Fail(fmt.Errorf("usage: %s HOST:PORT[,HOST:PORT...] TOPIC", os.Args[0]))
	}
	return &Walk{strings.Split(os.Args[1], ","), os.Args[2], codeOf}
}

// Step prints what was found: a value, Kafka's error code, or the client's own error.
func (w *Walk) Step(name string, find func() (any, error)) {
	found, err := find()
	if err != nil {
		found = map[string]any{"error": err.Error()}
		if code, ok := w.codeOf(err); ok {
			found = map[string]any{"code": code}
		}
	}
	line, err := json.Marshal(map[string]any{"step": name, "found": found})
	Fail(err)
	fmt.Println(string(line))
}

// Until waits for a condition, and no longer than Patience.
func Until(holds func() bool) error {
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if holds() {
			return nil
		}
	}
	return fmt.Errorf("not so within %s", Patience)
}

// Fail ends the program if there is an error.
func Fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

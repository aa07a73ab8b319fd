# Everything that is done with this repository. `make` alone lists it.

PYTHON ?= python3
# What tests run by default (testbed/releases.py), and the line before it, which only `make test-all` needs.
KAFKA := 4.4.0
FORMER := 4.3.1
KAFKA_PROFILES := kafka-$(KAFKA) kafka-3.9.1 kafka-2.8.2 spark-kafka-4.0.0

VENV := .venv
BIN := $(VENV)/bin
VENV_READY := $(VENV)/ready
JARS := build/jvm
TIERED_READY := $(JARS)/kafka-tiered-4.3.1.ready
JARS_READY := $(KAFKA_PROFILES:%=$(JARS)/%.ready)
ALL_JARS_READY := $(JARS_READY) $(JARS)/kafka-$(FORMER).ready $(TIERED_READY)
PYTEST := $(BIN)/python -m pytest

# Compiled files are kept: tests start hundreds of Python processes, which would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Set-up. Every other target does what it needs of this by itself.

.PHONY: venv
venv: $(VENV_READY) ## virtual environment in .venv, versions from constraints.txt

.PHONY: lock
lock: ## locks/ with the hashes of what constraints.txt pins, from the index that pip is told to use
	@PYTHON="$(PYTHON)" bash scripts/prerequisites.sh python
	@test -x $(BIN)/uv || { $(MAKE) --no-print-directory $(VENV_READY); }
	$(BIN)/python scripts/lock.py

.PHONY: jars
jars: $(ALL_JARS_READY) ## jars of real Kafka and ZooKeeper in build/jvm, by Maven

# Nothing is installed whose hash is not in a lock: not what builds packages either, so there is no isolated build.
# pip is asked for uv alone, and uv for all else: it fetches side by side, and says what.
PIP := -m pip install --quiet --disable-pip-version-check
INSTALL := scripts/lock.py install
$(VENV_READY): pyproject.toml locks/build.lock locks/develop.lock
	@PYTHON="$(PYTHON)" bash scripts/prerequisites.sh python
	@echo "setting up $(VENV)"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python $(PIP) --require-hashes -r locks/build.lock
	@$(BIN)/python $(INSTALL) locks/develop.lock
	@$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# Fetched beside its place and then renamed, so that an interrupted download leaves nothing that looks whole.
define FETCH_JARS
@bash scripts/prerequisites.sh java maven
@echo "fetching the jars of $(1)"
@rm -rf $(JARS)/$(1).part && mkdir -p $(JARS)
@mvn --quiet --batch-mode -f $< $(2) dependency:copy-dependencies \
  -DoutputDirectory="$(CURDIR)/$(JARS)/$(1).part" >$(JARS)/$(1).log 2>&1 || { cat $(JARS)/$(1).log >&2; exit 1; }
@rm -rf $(JARS)/$(1) && mv $(JARS)/$(1).part $(JARS)/$(1)
@touch $@
endef
$(JARS)/%.ready: jvm/pom.xml
	$(call FETCH_JARS,$*,-P $*)
$(JARS)/kafka-4.%.ready: jvm/pom.xml
	$(call FETCH_JARS,kafka-4.$*,-P kafka-4 -Dkafka.version=4.$*)
$(TIERED_READY): jvm/tiered.xml
	$(call FETCH_JARS,kafka-tiered-4.3.1)
# One Maven at a time: they share what they fetched.
$(JARS)/kafka-3.9.1.ready: | $(JARS)/kafka-$(KAFKA).ready
$(JARS)/kafka-2.8.2.ready: | $(JARS)/kafka-3.9.1.ready
$(JARS)/spark-kafka-4.0.0.ready: | $(JARS)/kafka-2.8.2.ready
$(JARS)/kafka-$(FORMER).ready: | $(JARS)/spark-kafka-4.0.0.ready
$(TIERED_READY): | $(JARS)/kafka-$(FORMER).ready

.PHONY: set-up
set-up: ## all that `make test` needs, fetched and installed side by side
	@$(MAKE) --no-print-directory --silent --jobs=2 $(VENV_READY) $(JARS_READY)

# What makes programs of Kafka and Spark start with half of the work. All runs without it too, so that a failure is no matter.
CLASS_DATA := $(JARS)/kafka-$(KAFKA).jsa
ALL_CLASS_DATA := $(CLASS_DATA) $(JARS)/kafka-$(FORMER).jsa $(JARS)/kafka-3.9.1.jsa $(JARS)/spark.jsa
$(JARS)/kafka-%.jsa: $(JARS)/kafka-%.ready | $(VENV_READY)
	@echo "keeping the class data of Kafka $*"
	-@$(BIN)/python -m testbed.class_data $*
$(JARS)/spark.jsa: $(VENV_READY)
	@bash scripts/prerequisites.sh java
	@echo "keeping the class data of Spark"
	@mkdir -p $(JARS)
	-@$(BIN)/python -m testbed.class_data spark

# Checks and tests: docs/design/tests.md says which suite has what, and why.

LINTS_1 = $(addprefix tests/test_,architecture.py imports.py dead_code.py tidy.py)
LINTS_2 = $(addprefix tests/test_,words.py suites.py pages.py kips_page.py)
LINTS = $(LINTS_1) $(LINTS_2)
TESTS = $(PYTEST) -q $(LINTS:%=--ignore=%)
LONG = thorough or kafka or spark or browser
# Three parts side by side, each a pytest of its own: thousands of tests of a few milliseconds would cost half as much
# again with pytest-xdist, which collects them in each worker and sends three reports of each. The second part waits as
# long as it computes, for time-outs and processes, so that three parts keep two cores busy.
# What a process of a test writes is not kept: two files for each of thousands of tests cost a tenth of their time.
FAST = $(TESTS) -n 0 --capture=sys --ignore=tests/real -m "not ($(LONG) or exhaustive)"
PART_1 = $(addprefix tests/,cli planner pipeline report kafka_tools operations web test_public_api.py)
PART_2 = $(addprefix tests/,admin executor testbed wire mutants scripts)
LEFT = build/left-to-make-test
PART = $(FAST) --left-to=$(LEFT)
ALL_PARTS = @mkdir -p build; \
  $(PART)-1 $(PART_1) >build/test-fast-1.log 2>&1 & first=$$!; $(PART)-2 $(PART_2) >build/test-fast-2.log 2>&1 & second=$$!; \
  $(PART)-3 $(patsubst %,--ignore=%,$(PART_1) $(PART_2)); rest=$$?; \
  wait $$first; first=$$?; wait $$second; second=$$?; cat build/test-fast-[12].log; exit $$((first | second | rest))
# Tests that share what takes long to start run in a row on one worker, the longest row first (tests/clusters.py). They
# wait more than they compute: four workers keep two cores busy.
SHARING = KREASSIGN_REQUIRE_KAFKA=1 KREASSIGN_REQUIRE_CHROMIUM=1 $(TESTS) -n 4 --dist loadgroup --no-loadscope-reorder \
  --durations=20

.PHONY: check
check: $(VENV_READY) ## format, lint, types, import rules, tidiness, words and pages
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	@# Types and two parts of the rules side by side: none uses more than one core.
	@mkdir -p build
	$(BIN)/mypy & types=$$!; $(PYTEST) -q $(LINTS_1) >build/check.log 2>&1 & first=$$!; $(PYTEST) -q $(LINTS_2); rest=$$?; \
	  wait $$first; first=$$?; cat build/check.log; wait $$types && exit $$((first | rest))

.PHONY: test
test: ## check, then what a change must pass: quick tests, and those on real Kafka, Spark and Chromium
	@bash scripts/prerequisites.sh
	@$(MAKE) --no-print-directory set-up
	@# Side by side: none of the three keeps two cores busy by itself.
	@echo "checking and running the quick tests, two to three minutes: what each says is shown when it ends"
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target check test-fast $(CLASS_DATA)
	@# Only files in which the quick tests left something: each of four workers collects them.
	$(SHARING) -m "($(LONG)) and not exhaustive" tests/real $$(cat $(LEFT)-[123])

.PHONY: test-all
test-all: test $(ALL_JARS_READY) $(ALL_CLASS_DATA) ## test, then what is exhaustive: every row, version, seed and death
	$(SHARING) -m exhaustive

.PHONY: test-fast
test-fast: $(VENV_READY) ## quick tests, without Kafka, Spark and Chromium
	$(ALL_PARTS)

.PHONY: approve
approve: $(VENV_READY) ## write approved screens again where they differ; git diff shows what users will see
	KREASSIGN_APPROVE=1 $(TESTS) -n 0 -m "not (kafka or spark or browser)" $$(grep -rl "^from tests.approved import" tests)

.PHONY: test-kafka
test-kafka: $(VENV_READY) $(JARS_READY) $(CLASS_DATA) ## the tests on real Kafka
	@bash scripts/prerequisites.sh java
	$(SHARING) -m "kafka and not exhaustive"

.PHONY: test-spark
test-spark: $(VENV_READY) ## the tests on Spark
	@bash scripts/prerequisites.sh java
	$(PYTEST) -m "spark and not exhaustive"

.PHONY: test-browser
test-browser: $(VENV_READY) ## the tests of pages in headless Chromium
	@bash scripts/prerequisites.sh chromium
	KREASSIGN_REQUIRE_CHROMIUM=1 $(TESTS) -n 0 -m browser

ADVERSARIES ?= 1-9
.PHONY: simulate
simulate: $(VENV_READY) ## runs under the scenarios of adversaries, in turn: ADVERSARIES=1-90
	$(BIN)/python -m tests.simulation adversaries $(ADVERSARIES)

RUNS ?= 1-1000
SEQUENCES ?= 1-1000
FAULTS ?= 160
SEED ?= 1
.PHONY: torture
torture: torture-twin torture-kafka ## both campaigns that try to break what runs promise; their tables: docs/reference/torture.md

.PHONY: torture-twin
torture-twin: $(VENV_READY) ## runs, and sequences of commands, on random twins by seed: RUNS=1-1000 SEQUENCES=1-1000
	$(BIN)/python -m tests.simulation runs $(RUNS) --write
	$(BIN)/python -m tests.simulation sequences $(SEQUENCES) --write

.PHONY: torture-kafka
torture-kafka: $(VENV_READY) $(JARS_READY) $(CLASS_DATA) ## faults on real Kafka while runs move partitions: FAULTS=160 SEED=1
	@bash scripts/prerequisites.sh java
	$(BIN)/python -m tests.torture --faults $(FAULTS) --seed $(SEED) --write

EXAMPLES ?= 2000
FIRST ?= 0
.PHONY: fuzz
fuzz: $(VENV_READY) ## odd input to all that reads any, in thousands; its table: docs/reference/torture.md: EXAMPLES=2000
	$(BIN)/python -m tests.fuzz --examples $(EXAMPLES) --first $(FIRST) --write

SAMPLE ?= 150
MINUTES ?= 45
.PHONY: mutants
mutants: $(VENV_READY) ## generated faults in code that decides, and which tests notice: SAMPLE=150 SEED=1 MINUTES=45
	$(BIN)/python -m tests.mutants.campaign --sample $(SAMPLE) --seed $(SEED) --minutes $(MINUTES) --write

.PHONY: soak
soak: $(VENV_READY) $(JARS_READY) $(CLASS_DATA) ## many clients at once, a day in a twin's time, an hour on real Kafka: 90 minutes
	@bash scripts/prerequisites.sh java
	@failed=0; for part in connections page virtual hour; do $(BIN)/python -m bench soak-$$part || failed=1; done; exit $$failed

.PHONY: test-clients
test-clients: $(VENV_READY) $(JARS_READY) $(CLASS_DATA) ## foreign clients of Go, npm and PyPI, and their suites, on a twin and real Kafka
	@bash scripts/prerequisites.sh java
	$(BIN)/python -m tests.clients
	$(BIN)/python -m tests.clients.foreign_suites --write

VERSION ?=
.PHONY: kafka-next
kafka-next: $(VENV_READY) $(JARS_READY) ## what a release changes, and the tests that compare with real Kafka on it: VERSION=4.5.0
	@bash scripts/prerequisites.sh java maven
	PYTHONPATH=. $(BIN)/python scripts/kafka_next.py $(VERSION)

SPARK_NEXT = build/spark-$(VERSION)
.PHONY: spark-next
spark-next: $(VENV_READY) ## the tests on Spark, without Kafka, with another PySpark than the locked one: VERSION=4.3.0
	@bash scripts/prerequisites.sh java
	@echo "setting up $(SPARK_NEXT)"
	@test -x $(SPARK_NEXT)/bin/python || "$(PYTHON)" -m venv $(SPARK_NEXT)
	@$(SPARK_NEXT)/bin/python $(PIP) --require-hashes -r locks/build.lock
	@$(SPARK_NEXT)/bin/python $(INSTALL) locks/develop.lock
	@$(SPARK_NEXT)/bin/uv pip install --quiet --python $(SPARK_NEXT)/bin/python pyspark==$(VERSION)
	@$(SPARK_NEXT)/bin/python $(PIP) --no-deps --no-build-isolation -e .
	$(SPARK_NEXT)/bin/python -m pytest -m "spark and not kafka and not exhaustive"

S3_SERVER := build/moto
S3_SERVER_READY := $(S3_SERVER)/ready
S3_JARS_READY := $(JARS)/spark-s3.ready
$(S3_SERVER_READY): locks/build.lock locks/s3.lock
	@PYTHON="$(PYTHON)" bash scripts/prerequisites.sh python
	@echo "setting up $(S3_SERVER)"
	@test -x $(S3_SERVER)/bin/python || "$(PYTHON)" -m venv $(S3_SERVER)
	@$(S3_SERVER)/bin/python $(PIP) --require-hashes -r locks/build.lock
	@$(S3_SERVER)/bin/python $(INSTALL) locks/s3.lock
	@touch $@
$(S3_JARS_READY): jvm/s3.xml
	$(call FETCH_JARS,spark-s3)

.PHONY: test-s3
test-s3: $(VENV_READY) $(S3_SERVER_READY) $(S3_JARS_READY) ## tables on an S3 server of this machine, and read by delta-spark
	KREASSIGN_TEST_S3=1 $(PYTEST) -q -n 0 tests/s3

LOGINS := build/logins
LOGINS_READY := $(LOGINS)/ready
$(LOGINS_READY): locks/logins.lock | $(VENV_READY)
	@echo "setting up $(LOGINS)"
	@$(BIN)/python $(INSTALL) $< --no-deps --upgrade --target $(LOGINS)
	@touch $@

.PHONY: test-logins
test-logins: $(VENV_READY) $(JARS_READY) $(CLASS_DATA) $(LOGINS_READY) ## Kerberos with a KDC of this machine, and signatures of AWS
	@bash scripts/prerequisites.sh java
	PYTHONPATH=$(LOGINS) KREASSIGN_TEST_LOGINS=1 $(PYTEST) -q -n 0 tests/logins

PROMTOOL := build/prometheus/promtool
$(PROMTOOL): tests/prometheus/go.mod tests/prometheus/go.sum
	@command -v go >/dev/null || { echo "promtool is built with Go 1.26 or newer, which is not here"; exit 1; }
	@echo "building promtool"
	@cd tests/prometheus && go build -mod=readonly -tags remove_all_sd -o "$(CURDIR)/$@" github.com/prometheus/prometheus/cmd/promtool
	@touch $@

.PHONY: test-prometheus
test-prometheus: $(VENV_READY) $(PROMTOOL) ## metrics and alerts with promtool, built with Go
	KREASSIGN_TEST_PROMETHEUS=1 $(PYTEST) -q -n 0 tests/prometheus

# Documentation.

.PHONY: docs
docs: $(VENV_READY) ## the site of docs/ in build/site; a link that leads nowhere ends it
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean
	@echo "build/site/index.html"

# Seeing and measuring.

.PHONY: sizes
sizes: ## how large modules and functions are, package by package
	@"$(PYTHON)" scripts/sizes.py

.PHONY: sbom
sbom: $(VENV_READY) ## build/sbom.json: what an installation consists of, with licences (CycloneDX)
	@mkdir -p build
	$(BIN)/python scripts/sbom.py >build/sbom.json
	@echo "build/sbom.json"

OSV ?=
.PHONY: audit
audit: $(VENV_READY) ## known vulnerabilities of what an installation consists of, by pip-audit; OSV=PyPI/all.zip reads OSV's documents
	$(BIN)/python scripts/audit.py $(OSV)

KEY ?=
.PHONY: release
release: $(VENV_READY) ## build/release: built twice, checked, listed and signed; a dry run, but with KEY=an SSH key
	@bash scripts/prerequisites.sh ssh
	PYTHONPATH=. $(BIN)/python scripts/release.py $(KEY)

# Only what an installation without extras has.
DEMO := build/demo
DEMO_READY := $(DEMO)/ready
$(DEMO_READY): pyproject.toml locks/build.lock locks/base.lock
	@PYTHON="$(PYTHON)" bash scripts/prerequisites.sh python
	@echo "setting up $(DEMO)"
	@test -x $(DEMO)/bin/python || "$(PYTHON)" -m venv $(DEMO)
	@$(DEMO)/bin/python $(PIP) --require-hashes -r locks/build.lock
	@$(DEMO)/bin/python $(INSTALL) locks/base.lock
	@$(DEMO)/bin/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: demo
demo: $(DEMO_READY) ## kreassign demo: a change of a simulated cluster, killed, resumed and rolled back
	$(DEMO)/bin/kreassign demo

.PHONY: demo-kafka
demo-kafka: $(VENV_READY) $(JARS_READY) ## the demo on real Kafka, with load from Spark
	@bash scripts/prerequisites.sh java
	$(BIN)/python -m testbed.demo_kafka

.PHONY: animation
animation: $(VENV_READY) ## docs/images/terminal.svg: a run that is killed and resumed, from commands on a twin; two minutes
	PYTHONPATH=. $(BIN)/python scripts/terminal_animation.py

.PHONY: bench
bench: $(VENV_READY) $(JARS_READY) ## the figures of the documentation, measured here and now
	@bash scripts/prerequisites.sh java
	$(BIN)/python -m bench

.PHONY: clean
clean: ## remove what was built or downloaded, .venv too
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -prune -exec rm -rf {} +
	find src -name '*.egg-info' -prune -exec rm -rf {} +

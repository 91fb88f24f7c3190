// An exported package against the maps of Python (known.hpp, written by the test): the transmission,
// its loader, the controller. Prints what fails; returns the number of failures.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <new>

#include "known.hpp"  // PACKAGE's headers, and the numbers

static long allocations = 0;
void * operator new(std::size_t size)
{
  ++allocations;
  if (void * found = std::malloc(size)) {
    return found;
  }
  throw std::bad_alloc();
}
void operator delete(void * memory) noexcept { std::free(memory); }
void operator delete(void * memory, std::size_t) noexcept { std::free(memory); }

namespace
{
using namespace PACKAGE;  // NOLINT
using controller_interface::CallbackReturn;
using controller_interface::return_type;
using transmission_interface::ActuatorHandle;
using transmission_interface::JointHandle;

constexpr int NOT_FINITE = 1;
const double NaN = std::numeric_limits<double>::quiet_NaN();
int failures = 0, checks = 0;

template <class T>  // a text of the caller is no string before it is needed: strings allocate
void check(bool good, const T & what)
{
  ++checks;
  if (!good) {
    ++failures;
    std::printf("FAILED: %s\n", std::string(what).c_str());
  }
}

void near(double found, double expected, double tolerance, const std::string & what)
{
  const double size = std::max(1.0, std::fabs(expected));
  check(std::fabs(found - expected) <= tolerance * size,
    what + ": " + std::to_string(found) + " for " + std::to_string(expected));
}

void refused(const std::function<void()> & call, const std::string & part, const std::string & what)
{
  try {
    call();
    check(false, what + " is not refused");
  } catch (const transmission_interface::Exception & error) {
    check(std::string(error.what()).find(part) != std::string::npos, what + ": " + error.what());
  }
}

// Names in the robot; in another order by the alphabet than by the export.
std::string robot_joint(std::size_t j) { return std::string(1, 'z' - char(j)) + " " + JOINT_NAMES[j]; }
std::string robot_motor(std::size_t i) { return std::string(1, 'z' - char(i)) + " " + MOTOR_NAMES[i]; }

// Values of a hardware component, with handles in the order of names by the alphabet.
struct Hardware
{
  double joints[6][JOINTS], motors[6][MOTORS], status = -1.0;
  const char * kinds[6] = {"position", "velocity", "effort", "torque", "force", "absolute_position"};

  Hardware()
  {
    std::fill(&joints[0][0], &joints[0][0] + 6 * JOINTS, 0.0);
    std::fill(&motors[0][0], &motors[0][0] + 6 * MOTORS, 0.0);
  }
  std::vector<JointHandle> joint_handles(std::vector<int> given)
  {
    std::vector<JointHandle> found;
    for (int kind : given) {
      for (std::size_t j = JOINTS; j-- > 0;) {
        found.emplace_back(robot_joint(j), kinds[kind], &joints[kind][j]);
      }
    }
    return found;
  }
  std::vector<ActuatorHandle> motor_handles(std::vector<int> given)
  {
    std::vector<ActuatorHandle> found;
    for (int kind : given) {
      for (std::size_t i = MOTORS; i-- > 0;) {
        found.emplace_back(robot_motor(i), kinds[kind], &motors[kind][i]);
      }
    }
    return found;
  }
};

template <std::size_t N>
std::array<Scaled, N> scaled(
  std::string (*name)(std::size_t), double reduction, double offset, double more = 0.0)
{
  std::array<Scaled, N> found;
  for (std::size_t i = 0; i < N; ++i) {
    found[i] = {name(i), reduction + more * double(i), offset * (1.0 + double(i))};
  }
  return found;
}

const std::vector<int> ALL = {0, 1, 2, 3, 4, 5};

// Both directions along the walk, with gears and offsets; no call allocates.
void walk(double joint_n, double joint_offset, double motor_n, double motor_offset)
{
  const auto joints = scaled<JOINTS>(robot_joint, joint_n, joint_offset, 0.3);
  const auto motors = scaled<MOTORS>(robot_motor, motor_n, motor_offset, 0.5);
  Transmission trans(joints, motors);
  Hardware hw;
  trans.configure(hw.joint_handles(ALL), hw.motor_handles(ALL));
  check(trans.num_joints() == JOINTS && trans.num_actuators() == MOTORS, "numbers");
  double moved = 0.0;
  for (std::size_t k = 0; k < known::COUNT; ++k) {
    double power_of_motors = 0.0, power_of_joints = 0.0;
    for (std::size_t i = 0; i < MOTORS; ++i) {
      const double n = motors[i].reduction;
      hw.motors[0][i] = hw.motors[5][i] = n * (known::Q[k][i] + known::TURNS[i]) + motors[i].offset;
      hw.motors[1][i] = n * known::V[k][i];
      hw.motors[2][i] = hw.motors[3][i] = hw.motors[4][i] = known::U[k][i] / n;
      power_of_motors += hw.motors[1][i] * hw.motors[2][i];
    }
    const long before = allocations;
    trans.actuator_to_joint();
    for (int calls = 0; trans.status() == BEHIND && calls < 1000; ++calls) {
      trans.actuator_to_joint();
    }
    check(allocations == before, "actuator_to_joint allocates");
    check(trans.status() == OK, std::string("actuator_to_joint: ") + status_text(trans.status()));
    for (std::size_t j = 0; j < JOINTS; ++j) {
      const double n = joints[j].reduction;
      for (int kind : {0, 5}) {
        near(hw.joints[kind][j], known::Y[k][j] / n + joints[j].offset, 1e-9, "joint position");
      }
      near(hw.joints[1][j], known::YD[k][j] / n, 1e-8, "joint velocity");
      for (int kind : {2, 3, 4}) {
        near(hw.joints[kind][j], known::TAU[k][j] * n, 1e-8, "joint effort");
      }
      power_of_joints += hw.joints[1][j] * hw.joints[2][j];
      moved = std::max(moved, std::fabs(known::Y[k][j] - known::Y[0][j]));
    }
    near(power_of_joints, power_of_motors, 1e-8, "power");
    const double extremal = 1337.1337;
    std::fill(&hw.motors[0][0], &hw.motors[0][0] + 5 * MOTORS, extremal);
    const long then = allocations;
    trans.joint_to_actuator();
    check(allocations == then, "joint_to_actuator allocates");
    check(trans.status() == OK, std::string("joint_to_actuator: ") + status_text(trans.status()));
    for (std::size_t i = 0; i < MOTORS; ++i) {
      const double n = motors[i].reduction;
      near(hw.motors[0][i], n * (known::Q[k][i] + known::TURNS[i]) + motors[i].offset, 1e-9, "motor position");
      near(hw.motors[1][i], n * known::V[k][i], 1e-8, "motor velocity");
      for (int kind : {2, 3, 4}) {
        near(hw.motors[kind][i], known::U[k][i] / n, 1e-8, "motor effort");
      }
    }
  }
  check(moved > known::MOVED, "the walk is too short to show anything");
}

// Commanded positions far from the measured ones change neither efforts nor velocities.
void measured_and_commanded()
{
  Transmission trans(scaled<JOINTS>(robot_joint, 1, 0), scaled<MOTORS>(robot_motor, 1, 0));
  Hardware hw;
  const std::vector<int> some = {0, 1, 2};
  trans.configure(hw.joint_handles(some), hw.motor_handles(some));
  const std::size_t k = known::COUNT - 1;
  for (int calls = 0; calls < 1000 && trans.status() != OK; ++calls) {
    std::copy(known::Q[k], known::Q[k] + MOTORS, hw.motors[0]);
    trans.actuator_to_joint();
  }
  std::copy(known::Y[0], known::Y[0] + JOINTS, hw.joints[0]);
  std::copy(known::YD[k], known::YD[k] + JOINTS, hw.joints[1]);
  std::copy(known::TAU[k], known::TAU[k] + JOINTS, hw.joints[2]);
  for (int calls = 0; calls < 3; ++calls) {
    trans.joint_to_actuator();
    check(trans.status() == OK, "commands beside the measured posture");
    for (std::size_t i = 0; i < MOTORS; ++i) {
      near(hw.motors[0][i], known::Q[0][i], 1e-9, "commanded position");
      near(hw.motors[1][i], known::V[k][i], 1e-8, "velocity at the measured posture");
      near(hw.motors[2][i], known::U[k][i], 1e-8, "effort at the measured posture");
    }
  }
}

void bad_handles()
{
  Transmission trans(scaled<JOINTS>(robot_joint, 1, 0), scaled<MOTORS>(robot_motor, 1, 0));
  Hardware hw;
  double value = 0.0;
  const auto joints = hw.joint_handles({0, 1, 2});
  const auto motors = hw.motor_handles({0, 1, 2});
  const std::vector<JointHandle> no_joints;
  const std::vector<ActuatorHandle> no_motors;
  refused([&] { trans.configure(no_joints, no_motors); }, "joint handles must be of", "none");
  refused([&] { trans.configure(joints, no_motors); }, "actuator handles must be of", "no motors");
  refused([&] { trans.configure(no_joints, motors); }, "got none", "no joints");
  auto more = joints;
  more.emplace_back("stranger", "position", &value);
  refused([&] { trans.configure(more, motors); }, "'stranger'", "a stranger");
  for (const int kind : {0, 1, 2, 3, 4, 5}) {
    auto with_null = hw.joint_handles({kind});
    with_null.pop_back();
    with_null.emplace_back(robot_joint(0), hw.kinds[kind], nullptr);
    const auto needed = hw.motor_handles(kind == 5 ? ALL : std::vector<int>{0, 1, 2, 3, 4});
    if (JOINTS > 1) {
      refused([&] { trans.configure(with_null, needed); }, "missing, or have no value", "null");
    } else {
      refused([&] { trans.configure(with_null, needed); }, "share no interface", "null");
    }
  }
  auto twice = joints;
  twice.emplace_back(robot_joint(0), "position", &value);
  refused([&] { trans.configure(twice, motors); }, "more than one handle of 'position'", "twice");
  refused(
    [&] { trans.configure(hw.joint_handles({0}), hw.motor_handles({4})); }, "share no interface",
    "no pair");
  for (const int kind : {1, 2, 3, 4}) {
    refused(
      [&] { trans.configure(hw.joint_handles({kind}), hw.motor_handles({kind})); },
      "'position' or 'absolute_position' are missing", "no positions");
  }
  trans.actuator_to_joint();
  trans.joint_to_actuator();
  trans.actuator_to_joint();
  check(trans.status() == UNMEASURED, "a transmission that is not configured");
  trans.configure(hw.joint_handles({0}), hw.motor_handles({0, 4}));  // force of actuators alone
  check(
    trans.get_handles_info().find("force: joints none; actuators '") != std::string::npos,
    trans.get_handles_info());
  for (const double n : {0.0, NaN, HUGE_VAL}) {
    refused(
      [&] { Transmission(scaled<JOINTS>(robot_joint, n, 0), scaled<MOTORS>(robot_motor, 1, 0)); },
      "mechanical_reduction must be finite and not zero", "a reduction");
  }
}

// Failures: nothing is thrown, efforts are held, then zero, and the status says why.
void failures_of_measurement()
{
  const unsigned int limit = 3;
  for (const auto & bad : known::BAD) {  // not finite, infinite, out of reach
    Transmission trans(scaled<JOINTS>(robot_joint, 1, 0), scaled<MOTORS>(robot_motor, 1, 0), limit);
    Hardware hw;
    auto joints = hw.joint_handles({0, 1, 2});
    joints.emplace_back(robot_joint(0), "transmission_status", &hw.status);
    trans.configure(joints, hw.motor_handles({0, 1, 2}));
    std::copy(bad, bad + MOTORS, hw.motors[0]);
    trans.actuator_to_joint();
    for (std::size_t j = 0; j < JOINTS; ++j) {
      check(std::isnan(hw.joints[0][j]) && std::isnan(hw.joints[2][j]), "unmeasured joints are NaN");
      hw.joints[2][j] = known::TAU[0][j];
    }
    trans.joint_to_actuator();
    for (std::size_t i = 0; i < MOTORS; ++i) {
      check(hw.motors[2][i] == 0.0, "effort without a measurement");
    }
    trans.reset();
    for (int calls = 0; calls < 1000 && trans.status() != OK; ++calls) {
      std::copy(known::Q[0], known::Q[0] + MOTORS, hw.motors[0]);
      std::copy(known::U[0], known::U[0] + MOTORS, hw.motors[2]);
      trans.actuator_to_joint();
    }
    check(trans.status() == OK && hw.status == OK, "first posture");
    std::copy(known::TAU[0], known::TAU[0] + JOINTS, hw.joints[2]);
    trans.joint_to_actuator();
    check(trans.status() == OK, std::string("first command: ") + status_text(trans.status()));
    const double first = hw.motors[0][0];
    for (unsigned int call = 1; call < 40; ++call) {
      const bool held = call <= limit;
      std::copy(bad, bad + MOTORS, hw.motors[0]);
      trans.actuator_to_joint();
      check(trans.status() != OK && hw.status == trans.status(), "status of bad positions");
      if (std::isfinite(hw.motors[0][0])) {
        check(trans.cause() != NOT_FINITE, "cause");
      } else {
        check(trans.cause() == NOT_FINITE, "cause");
      }
      for (std::size_t j = 0; j < JOINTS; ++j) {
        check(std::isfinite(hw.joints[0][j]) && hw.joints[1][j] == 0.0, "joints of bad positions");
        const double tau = hw.joints[2][j];
        check(held ? tau != 0.0 : tau == 0.0, "joint effort is held, then zero");
        hw.joints[0][j] = known::Y[0][j];
        hw.joints[2][j] = 2.0 * known::TAU[0][j];  // changed meanwhile
      }
      trans.joint_to_actuator();
      check((trans.status() == EXPIRED) == !held && hw.status == trans.status(), "EXPIRED");
      check(trans.cause() != OK && trans.cause() != EXPIRED, "the cause");
      check(hw.motors[0][0] == first, "the commanded position is kept");
      for (std::size_t i = 0; i < MOTORS; ++i) {
        near(hw.motors[2][i], held ? known::U[0][i] : 0.0, 1e-8, "motor effort is held, then zero");
      }
    }
  }
}

// Efforts and positions that are no command, and measurements that stop.
void failures_of_commands()
{
  const unsigned int limit = 5;
  Transmission trans(scaled<JOINTS>(robot_joint, 1, 0), scaled<MOTORS>(robot_motor, 1, 0), limit);
  Hardware hw;
  const std::vector<int> some = {0, 1, 2};
  trans.configure(hw.joint_handles(some), hw.motor_handles(some));
  const auto measured = [&] {
    for (int calls = 0; calls < 1000; ++calls) {
      std::copy(known::Q[0], known::Q[0] + MOTORS, hw.motors[0]);
      trans.actuator_to_joint();
      if (trans.status() == OK) {
        return;
      }
    }
  };
  const auto good = [&] {
    std::copy(known::TAU[0], known::TAU[0] + JOINTS, hw.joints[2]);
    std::copy(known::Y[0], known::Y[0] + JOINTS, hw.joints[0]);
  };
  measured();
  good();
  trans.joint_to_actuator();
  check(trans.status() == OK, "a command");
  for (const double bad : {NaN, HUGE_VAL}) {
    for (const int kind : {0, 1, 2}) {
      measured();
      good();
      hw.joints[kind][JOINTS - 1] = bad;
      trans.joint_to_actuator();
      check(trans.status() == NOT_FINITE, "status of a bad command");
      for (std::size_t i = 0; i < MOTORS; ++i) {
        near(hw.motors[0][i], known::Q[0][i], 1e-9, "position of a bad command");
        check(std::isfinite(hw.motors[1][i]), "velocity of a bad command");
        near(hw.motors[2][i], known::U[0][i], 1e-8, "effort of a bad command");
      }
      good();
    }
  }
  measured();
  for (unsigned int call = 0; call < 20; ++call) {  // nobody measures
    good();
    trans.joint_to_actuator();
    const bool expired = call > 2 * limit;
    check((trans.status() == EXPIRED) == expired, "measurements that stop");
    check((hw.motors[2][0] == 0.0) == expired, "effort without measurements");
  }
  measured();
  good();
  trans.joint_to_actuator();
  check(trans.status() == OK && hw.motors[2][0] != 0.0, "measured again");
}

hardware_interface::TransmissionInfo info()
{
  hardware_interface::TransmissionInfo found;
  found.name = "linkage";
  for (std::size_t j = JOINTS; j-- > 0;) {
    hardware_interface::JointInfo one;
    one.name = robot_joint(j);
    one.role = JOINT_NAMES[j];
    found.joints.push_back(one);
  }
  for (std::size_t i = MOTORS; i-- > 0;) {
    hardware_interface::ActuatorInfo one;
    one.name = robot_motor(i);
    one.role = MOTOR_NAMES[i];
    one.mechanical_reduction = -3.0;
    found.actuators.push_back(one);
  }
  return found;
}

template <class T>
T * plugin(const char * path)
{
  void * library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, path);
  auto make = reinterpret_cast<T * (*)()>(dlsym(library, "make_plugin"));
  return make();
}

void loader(const char * path)
{
  std::unique_ptr<transmission_interface::TransmissionLoader> loads(
    plugin<transmission_interface::TransmissionLoader>(path));
  auto given = info();
  given.parameters["hold_limit"] = "7";
  auto found = loads->load(given);
  check(found != nullptr && found->num_joints() == JOINTS, "loaded");
  Hardware hw;
  found->configure(hw.joint_handles({0}), hw.motor_handles({0}));
  for (int calls = 0; calls < 1000; ++calls) {
    for (std::size_t i = 0; i < MOTORS; ++i) {
      hw.motors[0][i] = -3.0 * known::Q[0][i];
    }
    found->actuator_to_joint();
  }
  for (std::size_t j = 0; j < JOINTS; ++j) {
    near(hw.joints[0][j], known::Y[0][j], 1e-9, "position of a loaded transmission");
  }
  const auto fails = [&](const std::string & part, hardware_interface::TransmissionInfo wrong) {
    check(loads->load(wrong) == nullptr, part);
    const std::string & text = rclcpp::last_error();
    check(text.find(part) != std::string::npos && text.find("'linkage'") != std::string::npos, text);
  };
  auto wrong = info();
  for (auto & one : wrong.joints) {  // names of the export instead of roles
    one.name = one.role;
    one.role = "joint";
  }
  check(loads->load(wrong) != nullptr, "by names");
  wrong = info();
  wrong.joints[0].role = "nothing";
  fails("role 'nothing'", wrong);
  wrong = info();
  wrong.actuators.pop_back();
  fails("<actuator>", wrong);
  wrong = info();
  wrong.joints.push_back(wrong.joints[0]);
  fails("each once", wrong);
  wrong = info();
  wrong.actuators[0].mechanical_reduction = 0.0;
  fails("mechanical_reduction", wrong);
  for (const char * text : {"-1", "many", "", "1e9", "99999999999"}) {
    wrong = info();
    wrong.parameters["hold_limit"] = text;
    fails("hold_limit must be", wrong);
  }
}

// The controller in a chain, with interfaces that are lent in another order.
struct Chain
{
  std::unique_ptr<controller_interface::ChainableControllerInterface> controller;
  std::vector<hardware_interface::StateInterface::SharedPtr> lent, states;
  std::vector<hardware_interface::CommandInterface::SharedPtr> commands, references;

  explicit Chain(const char * path)
  : controller(plugin<controller_interface::ChainableControllerInterface>(path))
  {
    controller->node->name = "ankle";
    check(controller->on_init() == CallbackReturn::SUCCESS, "on_init");
  }
  void configure()
  {
    auto & parameters = controller->node->parameters;
    for (const char * name : JOINT_NAMES) {
      parameters[std::string("joints.") + name] = {std::string("robot ") + name};
    }
    check(controller->on_configure({}) == CallbackReturn::SUCCESS, "on_configure");
    states = controller->exported_states();
    references = controller->exported_references();
    for (const auto & name : controller->command_interface_configuration().names) {
      commands.push_back(std::make_shared<hardware_interface::CommandInterface>(
        name.substr(0, name.find('/')), name.substr(name.find('/') + 1)));
    }
    for (const auto & name : controller->state_interface_configuration().names) {
      lent.push_back(std::make_shared<hardware_interface::StateInterface>(
        name.substr(0, name.find('/')), name.substr(name.find('/') + 1)));
    }
    lend();
  }
  void lend()
  {
    std::vector<hardware_interface::LoanedCommandInterface> c;
    std::vector<hardware_interface::LoanedStateInterface> s;
    for (std::size_t i = commands.size(); i-- > 0;) {
      c.push_back({commands[i]});
    }
    for (std::size_t i = lent.size(); i-- > 0;) {
      s.push_back({lent[i]});
    }
    controller->assign_interfaces(c, s);
  }
  // What is lent by its name.
  template <class T>
  static T & named(std::vector<std::shared_ptr<T>> & all, const std::string & name)
  {
    for (auto & one : all) {
      if (one->get_name() == name) {
        return *one;
      }
    }
    check(false, "no interface " + name);
    return *all.at(0);
  }
  void measure(const double * q, const double * v, const double * u)
  {
    for (std::size_t i = 0; i < MOTORS; ++i) {
      const std::string motor = MOTOR_NAMES[i];
      check(named(lent, motor + "/position").set_value(q[i]), "position");
      check(named(lent, motor + "/velocity").set_value(v[i]), "velocity");
      check(named(lent, motor + "/effort").set_value(u[i]), "effort");
    }
  }
  void refer(const double * tau)
  {
    for (std::size_t j = 0; j < JOINTS; ++j) {
      const std::string joint = JOINT_NAMES[j];
      check(named(references, "ankle/robot " + joint + "/effort").set_value(tau[j]), "reference");
    }
  }
  double effort(std::size_t i)
  {
    return named(commands, std::string(MOTOR_NAMES[i]) + "/effort").get_optional().value();
  }
  double state(std::size_t j, const std::string & kind)
  {
    return named(states, std::string("ankle/robot ") + JOINT_NAMES[j] + "/" + kind)
      .get_optional().value();
  }
  double status(const char * what = "status")
  {
    return named(states, std::string("ankle/") + what).get_optional().value();
  }
};

void controller(const char * path)
{
  Chain chain(path);
  chain.configure();
  auto & ctl = *chain.controller;
  const std::size_t last = known::COUNT - 1;
  chain.measure(known::Q[last], known::V[last], known::U[last]);
  check(ctl.on_activate({}) == CallbackReturn::SUCCESS, "activated away from the start");
  for (std::size_t k = known::COUNT; k-- > 0;) {
    chain.measure(known::Q[k], known::V[k], known::U[k]);
    chain.refer(known::TAU[k]);
    const long before = allocations;
    const auto result = ctl.update(true);
    check(allocations == before, "update allocates");
    check(result == return_type::OK && chain.status() == OK, "update");
    for (std::size_t j = 0; j < JOINTS; ++j) {
      near(chain.state(j, "position"), known::Y[k][j], 1e-9, "position of the controller");
      near(chain.state(j, "velocity"), known::YD[k][j], 1e-8, "velocity of the controller");
      near(chain.state(j, "effort"), known::TAU[k][j], 1e-8, "effort of the controller");
    }
    for (std::size_t i = 0; i < MOTORS; ++i) {
      near(chain.effort(i), known::U[k][i], 1e-8, "motor effort of the controller");
    }
  }
  check(ctl.update(false) == return_type::OK, "without a preceding controller");
  check(chain.effort(0) == 0.0, "its efforts are zero");
  chain.refer(known::TAU[0]);
  check(ctl.update(true) == return_type::OK && chain.effort(0) != 0.0, "and again with one");
  chain.lent[0]->busy = true;  // for one tick
  check(ctl.update(true) == return_type::OK, "a state that cannot be read");
  check(chain.status() == NOT_FINITE && chain.effort(0) != 0.0, "its effort is held");
  chain.lent[0]->busy = false;
  check(ctl.update(true) == return_type::OK && chain.status() == OK, "and read again");
  for (const auto & bad : known::BAD) {
    chain.measure(known::Q[0], known::V[0], known::U[0]);
    for (int calls = 0; calls < 1000; ++calls) {
      ctl.update(true);
    }
    check(chain.status() == OK || ctl.on_activate({}) == CallbackReturn::SUCCESS, "good again");
    chain.refer(known::TAU[0]);
    check(ctl.update(true) == return_type::OK, "good");
    chain.measure(bad, known::V[0], known::U[0]);
    for (unsigned int call = 1; call < HOLD_LIMIT + 20; ++call) {
      const bool held = call <= HOLD_LIMIT;
      check(ctl.update(true) == (held ? return_type::OK : return_type::ERROR), "held or not");
      near(chain.effort(0), held ? known::U[0][0] : 0.0, 1e-8, "held, then zero");
      check((chain.status() == EXPIRED) == !held && chain.status("cause") != OK, "its status");
    }
  }
  chain.measure(known::Q[0], known::V[0], known::U[0]);
  check(ctl.on_activate({}) == CallbackReturn::SUCCESS, "activated again");
  chain.refer(known::TAU[0]);
  ctl.update(true);
  ctl.on_deactivate({});
  check(chain.effort(0) == 0.0, "deactivated");
  const auto not_activated = [&](const std::string & part) {
    check(ctl.on_activate({}) == CallbackReturn::ERROR, part);
    check(rclcpp::last_error().find(part) != std::string::npos, rclcpp::last_error());
  };
  for (const auto & bad : known::BAD) {
    chain.measure(bad, known::V[0], known::U[0]);
    not_activated("not those of a posture on the branch");
  }
  chain.lent[1]->foreign = true;
  not_activated("Data type");
  chain.lent[1]->foreign = false;
  const auto kept = chain.lent.back();
  chain.lent.pop_back();
  chain.lend();
  not_activated("interfaces are missing: " + kept->get_name());
  auto & parameters = ctl.node->parameters;
  parameters["hold_limit"] = {std::int64_t{-1}};
  check(ctl.on_configure({}) == CallbackReturn::ERROR, "a hold limit");
  parameters["hold_limit"] = {std::int64_t{0}};
  parameters[std::string("joints.") + JOINT_NAMES[0]] = {std::string()};
  check(ctl.on_configure({}) == CallbackReturn::ERROR, "an empty name");
}
}  // namespace

int main(int, char ** paths)
{
  walk(1.0, 0.0, 1.0, 0.0);
  walk(-0.75, 0.1, 40.0, 0.3);
  measured_and_commanded();
  bad_handles();
  failures_of_measurement();
  failures_of_commands();
  loader(paths[1]);
  controller(paths[2]);
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
